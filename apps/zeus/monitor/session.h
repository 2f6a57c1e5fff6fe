#pragma once

#include <string>
#include <vector>

#include "apps/zeus/carbon_options.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// The options of `zeus monitor`. Empty texts were not given.
struct MonitorOptions {
  double interval = 1.0;  // In seconds.
  double duration = 0;    // In seconds; 0: until interrupted.
  std::vector<unsigned> gpus;
  bool no_cpu = false;
  bool json = false;
  bool csv = false;
  bool quiet = false;
  std::string output;
  std::string trace;
  std::string serve;
  std::string push;
  std::string job = "zeus";
  std::string instance;
  CarbonOptions carbon;
};

// Monitors until the duration is over, a signal arrives, or the reader of the output has gone.
// Returns the exit code.
Result<int> RunMonitor(const MonitorOptions& options);

}  // namespace zeus::cli
