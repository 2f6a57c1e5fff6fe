#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"

namespace zeus::cli {

struct ServeOptions {
  std::string listen = "127.0.0.1:8000";
  std::string database{};  // Empty: a file in the user's data folder.
  std::string tokens{};
  std::string new_token{};   // Name of a token to create instead of serving.
  bool read_only = false;    // Role of the new token.
  bool admin = false;        // Role of the new token.
  std::string name_space{};  // Namespace of the new token; empty: the default one.
  std::vector<std::string> quotas{};
  std::vector<std::string> hosts{};  // Additional host names of the server.
  std::string tls_certificate{};
  std::string tls_key{};
  std::string access_log = "-";
  bool no_access_log = false;
  bool insecure = false;
  bool plain_http = false;  // Allows tokens without TLS.
  std::uint64_t max_body = std::uint64_t{1} << 20;
  // Limit for all request bodies together, in bytes.
  std::uint64_t body_memory = std::uint64_t{32} << 20;
  std::optional<std::uint64_t> max_connections{};  // Default: what the limit of open files allows.
  std::optional<std::uint64_t> max_connections_per_address{};  // Default: half of max_connections.
  std::uint64_t workers = 64;
  double header_timeout = 10;
  double idle_timeout = 75;
  double request_timeout = 60;
  double shutdown_timeout = 30;
  std::uint64_t solves = 2;                  // Number of frontiers solved at the same time.
  std::uint64_t max_instructions = 1 << 16;  // Largest pipeline to plan for.
  std::string pipeline_schedule{};           // Path of a file; empty: none.
  double rank_timeout = 600;                 // How long a rank waits for the others.
  double session_timeout = 7 * 24 * 3600.0;  // How long an unused pipeline is kept.
};

// Serves until a signal ends the server. Returns the exit code.
Result<int> RunServe(const ServeOptions& options);

// Creates a token and prints it.
Result<int> MakeToken(const ServeOptions& options);

}  // namespace zeus::cli
