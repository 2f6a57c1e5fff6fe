#pragma once

#include <string>
#include <vector>

#include "zeus/base/result.h"

namespace zeus::cli {

// The options of `zeus fleet`. Empty texts were not given.
struct FleetOptions {
  std::vector<std::string> nodes;
  std::string nodes_file;
  std::string prometheus;
  std::string listen = "127.0.0.1:9500";
  std::string token_file;
  std::string tls_ca;
  std::vector<std::string> hosts;
  std::vector<std::string> best_limits;
  double interval = 10;  // In seconds.
};

// Serves the page of the fleet until a signal. Returns the exit code.
Result<int> RunFleet(const FleetOptions& options);

}  // namespace zeus::cli
