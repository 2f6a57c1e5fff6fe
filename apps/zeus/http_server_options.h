#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/command_line.h"
#include "apps/zeus/server_options.h"

// The options that every verb with an HTTP server and a database has.
namespace zeus::cli {

struct HttpServerOptions {
  std::string listen = "127.0.0.1:8000";
  std::string database{};  // Empty: the user's own file.
  std::string tokens{};
  std::string new_token{};           // The name of a token to make instead of serving.
  bool read_only = false;            // The role of the new token.
  bool admin = false;                // The new token is an administrator's.
  std::string name_space{};          // The name space of the new token; empty: the default one.
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
};

// --listen and --database.
void AddAddressOptions(Verb verb, HttpServerOptions& options);
// Tokens, TLS and host names. Returns --new-token, for options that belong to it.
Option AddSecurityOptions(Verb verb, HttpServerOptions& options);
// The access log, and the bounds on clients.
void AddLogOptions(Verb verb, HttpServerOptions& options);
void AddLimitOptions(Verb verb, HttpServerOptions& options);

}  // namespace zeus::cli
