#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/server_options.h"
#include "zeus/base/result.h"
#include "zeus/carbon/carbon_accounting.h"

namespace zeus::cli {

struct ServeOptions {
  std::string listen = "127.0.0.1:8000";
  std::string database{};  // Empty: the user's own file.
  std::string tokens{};
  std::string new_token{};   // The name of a token to make instead of serving.
  bool read_only = false;    // The role of the new token.
  bool admin = false;        // The new token is an administrator's.
  std::string name_space{};  // The name space of the new token; empty: the default one.
  std::vector<std::string> quotas{};
  std::vector<std::string> hosts{};  // Further names of the server.
  ServerFiles files{};
  bool no_access_log = false;
  bool insecure = false;
  bool plain_http = false;  // Other machines may send tokens without TLS.
  std::uint64_t max_body = std::uint64_t{1} << 20;
  std::uint64_t body_memory = std::uint64_t{32} << 20;  // Bytes of all bodies together.
  std::optional<std::uint64_t> max_connections{};       // nullopt: by the limit of open files.
  std::optional<std::uint64_t> max_connections_per_address{};  // nullopt: half of max_connections.
  std::uint64_t workers = 64;
  double header_timeout = 10;
  double idle_timeout = 75;
  double request_timeout = 60;
  double shutdown_timeout = 30;
  std::uint64_t solves = 2;                  // Frontiers that are solved at the same time.
  std::uint64_t max_instructions = 1 << 16;  // The largest pipeline to plan for.
  std::string pipeline_schedule{};           // A file; empty: no such schedule.
  double rank_timeout = 600;                 // Seconds that a rank waits for the others.
  double session_timeout = 7 * 24 * 3600.0;  // Seconds until an unused pipeline is deleted.
  std::optional<std::uint64_t> owner{};      // Process whose child it is and with which it ends.
  CarbonOptions carbon{};                    // Emissions and money of saved energy.
};

// Serves until a signal. Returns the exit code.
Result<int> RunServe(const ServeOptions& options);

// Makes a token and prints it.
Result<int> MakeToken(const ServeOptions& options);

}  // namespace zeus::cli
