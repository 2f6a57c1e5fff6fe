#pragma once

#include <string>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/result.h"

namespace zeus::cli {

enum class Metric {
  kEnergy,
  kAttributedEnergy,
  kNetEnergy,
  kTime,
  kPower,
  // Figures of language models: only files of `zeus llm bench` have them.
  kTokenEnergy,    // Per output token, in steady state.
  kRequestEnergy,  // Per request.
  kTtft,           // 90th percentile of the time to the first token.
  kTpot,           // 90th percentile of the time per output token.
};
std::vector<std::string> MetricNames();
const char* MetricName(Metric metric);  // As on the command line: "energy", …
const char* MetricUnit(Metric metric);  // "J", "s", "W"
Result<Metric> FindMetric(const std::string& name);

// A file that `zeus run --json` or `zeus llm bench --json` wrote.
struct RunFile {
  std::string path;
  std::vector<std::string> command;
  std::string host;
  std::vector<Json> runs;  // One element without --repeat.
};

// kNotFound and kPermissionDenied concern the file itself; kInvalidArgument its content.
Result<RunFile> ReadRunFile(const std::string& path);

// The values of one metric of one device in the runs of a file.
struct Samples {
  std::vector<double> values;
  // Mean of sigma / value, which is mostly the calibration error of the board.
  double relative_sigma = 0;
  // The measured devices by UUID, or by host and name if they have none.
  std::vector<std::string> devices;

  // Counts of runs that were left out, and of questionable ones.
  int failed = 0;      // The exit code of the command was not 0.
  int unmeasured = 0;  // The device has no value.
  int different = 0;   // The total covers other devices than in the first run.
  int too_short = 0;   // The run counts, but is flagged short_window.
};

// `device` is "total" or a name. kNotFound when no run has the device.
Result<Samples> CollectSamples(const RunFile& file, Metric metric, const std::string& device);

}  // namespace zeus::cli
