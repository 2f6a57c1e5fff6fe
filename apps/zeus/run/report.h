#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/units.h"
#include "zeus/carbon/carbon_report.h"
#include "zeus/monitor/measurement.h"
#include "zeus/ranks/rank_share.h"

namespace zeus::cli {

// Identity of a measured device: two files are comparable when these agree.
struct DeviceIdentity {
  std::string device;  // "gpu:0"
  std::string model;   // Empty if unknown, as is the next.
  std::string uuid;
  bool calibrated = false;  // By `zeus calibrate`.
};

// Power of a device without the command.
struct IdlePower {
  std::string device;
  Watts power;
  Watts sigma;  // 0 for a value that the user gave.
};

// One execution of the command.
struct Run {
  int exit_code = 0;
  Measurement measurement;
};

// Everything `zeus run` found out, in the form that every output is made from.
struct RunReport {
  std::vector<std::string> command;
  std::string label;
  std::string host;
  std::vector<DeviceIdentity> devices;
  std::vector<std::string> remarks{};  // On the devices, for every reader of their numbers.
  std::vector<IdlePower> idle;         // Empty unless it is to be subtracted.

  // Set when the command was to be run several times: how often, warm-ups apart.
  std::optional<unsigned> planned_runs;
  unsigned warmup_runs = 0;
  std::vector<Run> runs;  // Never empty when a report is made.

  // Set when several ranks report together; devices are called "n1/gpu:0" then.
  std::optional<JobMeasurement> ranks{};
  enum class Rows {
    kTotal,
    kNodes
  } rows = Rows::kTotal;  // The rows of the table where ranks report.

  // Emissions and cost of a run (of the mean of several), where they were asked for.
  std::optional<CarbonReport> carbon;
};

// The energy above idle of one device or of a sum.
struct NetEnergy {
  Joules energy;
  Joules sigma;
};
// nullopt for a device without a number or without an idle power.
std::optional<NetEnergy> ComputeNetEnergy(const DeviceMeasurement& device, Seconds time,
                                          const std::vector<IdlePower>& idle);
// The sum over the devices of the total that have one, and which those are.
struct NetTotal {
  NetEnergy net;
  std::vector<std::string> contains;
};
NetTotal ComputeNetTotal(const Measurement& measurement, const std::vector<IdlePower>& idle);

// Time and energies averaged over the runs; flags that any of them has. A device has a number when
// it had one in a run.
Run MeanRun(const std::vector<Run>& runs);

// See docs/formats.md.
Json ToJson(const RunReport& report);

// For people: a table and notes, ending in a newline.
std::string ToTable(const RunReport& report);

// Where each number of the table comes from: sensor, updates, both parts of ±, flags.
std::string ToExplanation(const RunReport& report);

// Explains a flag to the reader of a number: "the power limit was changed meanwhile".
const char* FlagMeaning(std::string_view flag);

// Rows for run number `index` (from 0), and the names of their columns. Quoted as RFC 4180 says,
// with the line ends of Unix.
std::string CsvHeader();
std::string ToCsv(const RunReport& report, std::size_t index);

}  // namespace zeus::cli
