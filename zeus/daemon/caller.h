#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/process.h"
#include "zeus/daemon/scope.h"

namespace zeus::daemon {

// The identity at the other end of a connection, as the daemon understands it. It is taken once,
// when the connection is accepted, and never changes: a descriptor that is passed on keeps the
// identity of the process that connected. Immutable.
struct Caller {
  enum class Transport { kUnixSocket, kTcp };

  Transport transport = Transport::kUnixSocket;
  // "uid:1001" on a Unix socket, otherwise the subject of the token, or "cert:" and the name of the
  // certificate; "anonymous" without any.
  std::string subject{};

  // The process that connected; known on Unix sockets only.
  std::optional<uid_t> uid{};
  gid_t gid = 0;
  std::vector<gid_t> groups{};  // Supplementary groups.
  // nullopt when the process lives in a pid namespace that the daemon cannot see.
  std::optional<ProcessIdentity> process{};
  std::shared_ptr<FileDescriptor> pidfd{};  // Null when there is none.
  // A namespace of the process differs from the daemon's, or its pid is not visible.
  bool contained = false;
  std::string cgroup{};      // "/user.slice/…"; empty when not known.
  std::string executable{};  // For the audit log only: the process can choose it.

  // The scopes of the token; nullopt without a token.
  std::optional<ScopeSet> token_scopes{};

  std::uint64_t connection = 0;  // Unique while the daemon runs.

  bool is_host_root() const { return uid == uid_t{0} && !contained; }
};

}  // namespace zeus::daemon
