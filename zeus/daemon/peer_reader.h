#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/daemon/caller.h"

namespace zeus::daemon {

// Reads who is at the other end of a connection that was just accepted. Thread-safe.
class PeerReader {
 public:
  // The namespaces of this process are read now; callers are compared with them. Files are compared
  // with those of the machine's first process, too: a service sees some of its own.
  explicit PeerReader(std::filesystem::path procfs = "/proc");

  // Peer credentials, groups, pidfd, namespaces and cgroup of a Unix socket. The pidfd belongs to
  // the process that connected, or there is none: its start time is compared with the moment of the
  // accept. kUnavailable when the kernel tells nothing.
  Result<Caller> Read(int socket, std::uint64_t connection) const;
  // A caller over TCP, before its token is seen.
  static Caller OverTcp(std::uint64_t connection);

 private:
  void ReadProcess(std::int64_t pid, Caller& caller) const;
  bool IsContained(const std::filesystem::path& process) const;

  std::filesystem::path procfs_;
  std::string pid_namespace_{};
  std::string user_namespace_{};
  std::string mount_namespace_{};
  std::string mount_namespace_of_machine_{};
};

// The pidfd of the process with this number, for kernels that give none for a socket: null when the
// process started after the moment `since_boot`, so that its number was another one's then.
std::shared_ptr<FileDescriptor> PidfdOfProcessBefore(std::int64_t pid, Seconds since_boot,
                                                     const std::filesystem::path& procfs = "/proc");

// The process that the caller knows by this number: programs in a container count in a pid
// namespace of their own. kNotFound when there is none.
Result<ProcessIdentity> ProcessAsSeenBy(const Caller& caller, std::int64_t pid,
                                        const std::filesystem::path& procfs = "/proc");

}  // namespace zeus::daemon
