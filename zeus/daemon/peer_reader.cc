#include "zeus/daemon/peer_reader.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/process.h"
#include "zeus/base/text.h"
#include "zeus/daemon/cgroup.h"

namespace zeus::daemon {
namespace {

namespace fs = std::filesystem;

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5; the headers of Debian 12 are older.
#endif

constexpr std::size_t kMostGroups = 65536;  // NGROUPS_MAX of the kernel.

std::string LinkTarget(const fs::path& link) {
  std::error_code failure;
  const auto target = fs::read_symlink(link, failure);
  return failure ? std::string() : target.string();
}

std::vector<gid_t> PeerGroups(int socket) {
  socklen_t size = 0;
  // The first call tells the size by ERANGE.
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, nullptr, &size) == 0 || errno != ERANGE ||
      size > kMostGroups * sizeof(gid_t))
    return {};
  std::vector<gid_t> groups(size / sizeof(gid_t));
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) != 0) return {};
  groups.resize(size / sizeof(gid_t));
  return groups;
}

// Null where the kernel has no such option, or the process has ended.
std::shared_ptr<FileDescriptor> PidfdOfPeer(int socket) {
  int descriptor = -1;
  socklen_t size = sizeof(descriptor);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &descriptor, &size) != 0 || descriptor < 0)
    return nullptr;
  return std::make_shared<FileDescriptor>(descriptor);
}

// A process that has ended is ready for reading; until then nobody else has its number.
bool PeerHasEnded(const FileDescriptor& pidfd) {
  pollfd state{.fd = pidfd.get(), .events = POLLIN, .revents = 0};
  return ::poll(&state, 1, 0) != 0;
}

}  // namespace

std::shared_ptr<FileDescriptor> PidfdOfProcessBefore(std::int64_t pid, Seconds since_boot,
                                                     const fs::path& procfs) {
  auto pidfd = std::make_shared<FileDescriptor>(
      static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)));
  if (!pidfd->valid()) return nullptr;
  const auto process = ProcessWithPid(pid, procfs);
  if (!process.ok()) return nullptr;
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  if (static_cast<double>(process.value().start_ticks) * tick > since_boot.count()) return nullptr;
  return PeerHasEnded(*pidfd) ? nullptr : pidfd;
}

namespace {

// The number of the process in the innermost of its pid namespaces; 0 when it has ended.
std::int64_t InnermostPid(const fs::path& process) {
  const auto status = ReadSmallFile(process / "status");
  if (!status.ok()) return 0;
  constexpr std::string_view kField = "\nNSpid:";
  const std::size_t found = status.value().find(kField);
  if (found == std::string::npos) return 0;
  const std::size_t start = found + kField.size();
  std::string_view line = std::string_view(status.value()).substr(start);
  line = line.substr(0, line.find('\n'));
  const auto number = ParseUnsigned(Trim(line.substr(line.find_last_of(" \t") + 1)));
  return number.ok() ? static_cast<std::int64_t>(number.value()) : 0;
}

}  // namespace

Result<ProcessIdentity> ProcessAsSeenBy(const Caller& caller, std::int64_t pid,
                                        const fs::path& procfs) {
  if (!caller.process) {
    if (caller.transport == Caller::Transport::kTcp) return ProcessWithPid(pid, procfs);
    return Error{ErrorCode::kNotFound, "pid: the daemon cannot see your processes"};
  }
  const std::string its = LinkTarget(procfs / std::to_string(caller.process->pid) / "ns/pid");
  if (its == LinkTarget(procfs / "self/ns/pid")) return ProcessWithPid(pid, procfs);
  std::error_code failure;
  fs::directory_iterator entry(procfs, failure);
  for (const fs::directory_iterator end; !failure && entry != end; entry.increment(failure)) {
    const auto number = ParseUnsigned(entry->path().filename().string());
    if (!number.ok() || InnermostPid(entry->path()) != pid) continue;
    if (!its.empty() && LinkTarget(entry->path() / "ns/pid") == its)
      return ProcessWithPid(static_cast<std::int64_t>(number.value()), procfs);
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("pid: there is no process {} in your pid namespace", pid)};
}

PeerReader::PeerReader(fs::path procfs)
    : procfs_(std::move(procfs)),
      pid_namespace_(LinkTarget(procfs_ / "self/ns/pid")),
      user_namespace_(LinkTarget(procfs_ / "self/ns/user")),
      mount_namespace_(LinkTarget(procfs_ / "self/ns/mnt")),
      mount_namespace_of_machine_(LinkTarget(procfs_ / "1/ns/mnt")) {}

Result<Caller> PeerReader::Read(int socket, std::uint64_t connection) const {
  const Seconds accepted = CurrentBootTime().since;
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return Error{ErrorCode::kUnavailable, fmt::format("the kernel does not say who connected: {}",
                                                      std::generic_category().message(errno))};
  if (peer.uid == static_cast<uid_t>(-1))
    return Error{ErrorCode::kUnavailable, "the kernel does not say who connected"};
  Caller caller{.transport = Caller::Transport::kUnixSocket,
                .subject = fmt::format("uid:{}", peer.uid),
                .uid = peer.uid,
                .gid = peer.gid,
                .groups = PeerGroups(socket),
                .pidfd = PidfdOfPeer(socket),
                .contained = true,  // Until its namespaces are known.
                .connection = connection};
  if (peer.pid > 0 && !caller.pidfd)
    caller.pidfd = PidfdOfProcessBefore(peer.pid, accepted, procfs_);
  if (peer.pid > 0 && caller.pidfd) ReadProcess(peer.pid, caller);
  // Leases, events and log entries of the machine's root are not those of a container's.
  if (peer.uid == 0 && caller.contained) caller.subject += ":contained";
  return caller;
}

// Answers of /proc about a number belong to the process that connected only if that one still lives
// when everything has been read. Else a process could connect from a container, end, and be taken
// for the next one with its number.
void PeerReader::ReadProcess(std::int64_t pid, Caller& caller) const {
  const fs::path folder = procfs_ / std::to_string(pid);
  auto process = ProcessWithPid(pid, procfs_);
  const bool contained = IsContained(folder);
  const auto cgroup = ReadSmallFile(folder / "cgroup");
  std::string executable = LinkTarget(folder / "exe");
  if (!process.ok() || PeerHasEnded(*caller.pidfd)) return;
  caller.process = std::move(process).value();
  caller.contained = contained;
  if (cgroup.ok()) caller.cgroup = CgroupOfProcess(cgroup.value());
  caller.executable = std::move(executable);
}

bool PeerReader::IsContained(const fs::path& process) const {
  const auto differs = [&](const char* name, const std::string& own) {
    return own.empty() || LinkTarget(process / "ns" / name) != own;
  };
  // A daemon that systemd starts has mounts of its own (PrivateTmp, ProtectSystem), which nobody
  // shares.
  return differs("pid", pid_namespace_) || differs("user", user_namespace_) ||
         (differs("mnt", mount_namespace_) && differs("mnt", mount_namespace_of_machine_));
}

Caller PeerReader::OverTcp(std::uint64_t connection) {
  return {.transport = Caller::Transport::kTcp, .subject = "anonymous", .connection = connection};
}

}  // namespace zeus::daemon
