#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/carbon/carbon_accounting.h"

namespace zeus::cli {

struct ServeOptions {
  std::string listen = "127.0.0.1:8000";
  std::string database{};  // Empty: a file of the user.
  std::string tokens{};
  std::string new_token{};   // The name of a token to make instead of serving.
  bool read_only = false;    // The new token's role.
  bool admin = false;        // Likewise.
  std::string name_space{};  // The new token's; empty: the default one.
  std::vector<std::string> quotas{};
  std::vector<std::string> hosts{};  // More names that the server has.
  std::string tls_certificate{};
  std::string tls_key{};
  std::string access_log = "-";
  bool no_access_log = false;
  bool insecure = false;
  bool plain_http = false;  // Tokens travel without TLS.
  std::uint64_t max_body = std::uint64_t{1} << 20;
  std::uint64_t body_memory = std::uint64_t{32} << 20;  // Bytes of all bodies together.
  std::optional<std::uint64_t> max_connections{};       // Else what the limit of open files leaves.
  std::optional<std::uint64_t> max_connections_per_address{};  // Else half of max_connections.
  std::uint64_t workers = 64;
  double header_timeout = 10;
  double idle_timeout = 75;
  double request_timeout = 60;
  double shutdown_timeout = 30;
  std::uint64_t solves = 2;                  // Frontiers that are solved at the same time.
  std::uint64_t max_instructions = 1 << 16;  // Of a pipeline to plan for.
  std::string pipeline_schedule{};           // A file; empty: none.
  double rank_timeout = 600;                 // Of a rank that waits for the others.
  double session_timeout = 7 * 24 * 3600.0;  // Of a pipeline that nobody asks about.
  std::optional<std::uint64_t> owner{};      // Process whose child it is and with which it ends.
  CarbonOptions carbon{};                    // Emissions and money of saved energy.
};

// Serves until a signal ends it. The value is the exit code.
Result<int> RunServe(const ServeOptions& options);

// Makes a token and prints it.
Result<int> MakeToken(const ServeOptions& options);

}  // namespace zeus::cli
