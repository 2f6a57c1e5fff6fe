#pragma once

#include <string>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/result.h"

namespace zeus::cli {

enum class Metric { kEnergy, kAttributedEnergy, kNetEnergy, kTime, kPower };
const char* MetricName(Metric metric);  // As on the command line: "energy", …
const char* MetricUnit(Metric metric);  // "J", "s", "W"
Result<Metric> FindMetric(const std::string& name);

// A file that `zeus run --json` wrote.
struct RunFile {
  std::string path;
  std::vector<std::string> command;
  std::string host;
  std::vector<Json> runs;  // One without --repeat.
};

// kNotFound, kPermissionDenied: the file; kInvalidArgument: it is not what it should be.
Result<RunFile> ReadRunFile(const std::string& path);

// What the runs of a file say about one metric of one device.
struct Samples {
  std::vector<double> values;
  // Mean of sigma / value: what a board's calibration may be wrong by, mostly.
  double relative_sigma = 0;
  // Who was measured: a UUID, or host and name for devices that have none.
  std::vector<std::string> devices;

  // Why there are fewer values than runs, and what to think of the others.
  int failed = 0;      // The command did not end with 0.
  int unmeasured = 0;  // The device has no number.
  int different = 0;   // A total of other devices than in the first run.
  int too_short = 0;   // Counted in, but flagged short_window.
};

// `device` is "total" or a name. kNotFound when no run knows the device.
Result<Samples> SamplesOf(const RunFile& file, Metric metric, const std::string& device);

}  // namespace zeus::cli
