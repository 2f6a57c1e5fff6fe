#pragma once

#include <string>
#include <vector>

#include "apps/zeus/carbon_options.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// What `zeus monitor` was asked for. Empty texts were not given.
struct MonitorOptions {
  double interval = 1.0;  // Seconds.
  double duration = 0;    // Seconds; 0: until interrupted.
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

// Monitors until the time is over, a signal comes, or nobody reads any more. The exit code.
Result<int> RunMonitor(const MonitorOptions& options);

}  // namespace zeus::cli
