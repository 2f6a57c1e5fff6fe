#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/http_server_options.h"
#include "zeus/base/result.h"
#include "zeus/carbon/carbon_accounting.h"

namespace zeus::cli {

struct ServeOptions : HttpServerOptions {
  std::vector<std::string> quotas{};
  std::uint64_t solves = 2;                  // Frontiers that are solved at the same time.
  std::uint64_t max_instructions = 1 << 16;  // The largest pipeline to plan for.
  std::string pipeline_schedule{};           // A file; empty: no such schedule.
  double rank_timeout = 600;                 // Seconds that a rank waits for the others.
  double session_timeout = 7 * 24 * 3600.0;  // Seconds until an unused pipeline is deleted.
  std::optional<std::uint64_t> owner{};      // Process whose child it is and with which it ends.
  std::string budget{};                      // A file; empty: the server shares out no power.
  CarbonOptions carbon{};                    // Emissions and money of saved energy.
};

// Serves until a signal. Returns the exit code.
Result<int> RunServe(const ServeOptions& options);

}  // namespace zeus::cli
