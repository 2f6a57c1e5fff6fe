#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/server_options.h"
#include "apps/zeusd/commands.h"
#include "zeus/base/result.h"

namespace zeus::daemon::cli {

struct ServeOptions {
  std::string mode = "uds";  // "uds" or "tcp"
  std::string socket_path = kSocket;
  std::string socket_permissions = "666";  // Octal.
  std::optional<std::uint64_t> socket_uid{};
  std::optional<std::uint64_t> socket_gid{};
  std::string tcp_bind_address{};  // Empty: 127.0.0.1:4938 in mode tcp, else no TCP.
  zeus::cli::ServerFiles files{};  // No access log unless asked for.
  bool insecure = false;
  std::vector<std::string> hosts{};  // Further names of the address on this machine.
  std::string client_ca{};           // Empty: certificates of clients mean nothing.
  std::string signing_key{};
  std::string revoked_tokens{};
  std::string configuration{};
  std::vector<std::string> groups{};  // Groups of the reference's requests; empty: all.
  std::string state_folder{};         // Empty: that of the socket.
  std::string audit_log{};            // Empty: $LOGS_DIRECTORY, else the state folder.
  std::uint64_t workers = 16;
  std::string job_folder{};     // Empty: none.
  std::string pod_resources{};  // Empty: the kubelet's own socket, where there is a kubelet.
  std::string pod_logs = "/var/log/pods";
  std::string sysfs = "/sys";
  // The power budget of a cluster; an empty address: none.
  struct Budget {
    std::string server{};              // http://host:8000
    std::string token_file{};          // Empty: no token.
    std::string authorities{};         // Empty: the system's.
    std::string node{};                // Empty: the name of the machine.
    std::optional<double> fallback{};  // Watts of a GPU; nullopt: its lowest limit.
    bool guarded = false;
  } budget{};
  std::string command_overrides{};  // Empty: the driver sets the knobs.
  // Options of the reference's daemon that mean nothing here.
  double ignored_hz = 0;
  std::string gpu_backend = "auto";
};

// Serves until a signal. Returns the exit code.
Result<int> Serve(const ServeOptions& options);

}  // namespace zeus::daemon::cli
