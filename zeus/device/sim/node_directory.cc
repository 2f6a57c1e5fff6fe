#include "zeus/device/sim/node_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/text.h"

namespace zeus::sim {
namespace {

constexpr std::string_view kPrefix = "zeus-sim-";
constexpr const char* kBootIdFile = "/proc/sys/kernel/random/boot_id";

// All users may read, only the owner may write.
constexpr mode_t kMode = 0644;

Result<NodeMemory> MapFile(const FileDescriptor& file, std::size_t size, Access access) {
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* address = ::mmap(nullptr, size, protection, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED)
    return Error{ErrorCode::kUnavailable, "cannot map: " + std::generic_category().message(errno)};
  return NodeMemory(address, size);
}

FileDescriptor OpenFile(const std::filesystem::path& path, Access access) {
  const int mode = access == Access::kRead ? O_RDONLY : O_RDWR;
  return FileDescriptor(::open(path.c_str(), mode | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

// Whether the open file is the one that bears the name now.
bool IsFileStillNamed(const std::filesystem::path& path, const FileDescriptor& file) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(file.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

Error NotYours(std::string_view name, std::string_view verb) {
  return {ErrorCode::kPermissionDenied,
          fmt::format("simulated node \"{}\": only root and the user who started it may {} it",
                      name, verb)};
}

Error Unusable(std::string_view name, const Error& error) {
  if (error.code == ErrorCode::kPermissionDenied) return error;
  return {error.code,
          fmt::format("{}; remove it with: zeus sim stop --name {}", error.message, name)};
}

}  // namespace

std::string ChosenNodeName() {
  const char* const name = std::getenv("ZEUS_SIM_NODE");
  return std::string(name == nullptr || *name == '\0' ? kDefaultNodeName : name);
}

NodeDirectory::NodeDirectory(std::filesystem::path directory, std::string boot_id, Clock& clock)
    : directory_(std::move(directory)), boot_id_(std::move(boot_id)), clock_(&clock) {}

Result<NodeDirectory> NodeDirectory::FromEnvironment(Clock& clock) {
  const char* directory = std::getenv("ZEUS_SIM_DIR");
  const bool given = directory != nullptr && *directory != '\0';
  std::error_code failure;
  if (given && !std::filesystem::is_directory(directory, failure)) {
    return Error{ErrorCode::kNotFound, fmt::format("ZEUS_SIM_DIR: {} is not a directory that can "
                                                   "be reached; create it or unset the variable",
                                                   Quote(directory))};
  }
  ZEUS_TRY(std::string boot_id, ReadLine(kBootIdFile));
  return NodeDirectory(given ? directory : "/dev/shm", std::move(boot_id), clock);
}

std::filesystem::path NodeDirectory::NodeFile(std::string_view name) const {
  return directory_ / fmt::format("{}{}", kPrefix, name);
}

Result<SharedNode> NodeDirectory::Create(std::string_view name, const NodeSpec& spec) const {
  ZEUS_RETURN_IF_ERROR(CheckNodeName(name));
  ZEUS_RETURN_IF_ERROR(CheckNodeSpec(spec));
  // A file without a name: it vanishes with this process unless it is published.
  const FileDescriptor file(::open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kMode));
  if (!file.valid()) return FileError(directory_, errno).While("start a simulated node");
  const std::size_t size = NodeSize(static_cast<unsigned>(spec.gpus.size()));
  // Reserve the memory now: a full file system is an error here instead of a SIGBUS in a training
  // job later.
  if (const int failure = ::posix_fallocate(file.get(), 0, static_cast<off_t>(size)); failure != 0)
    return FileError(directory_, failure).While("start a simulated node");
  if (::fchmod(file.get(), kMode) != 0) return FileError(directory_, errno);
  ZEUS_TRY(NodeMemory memory, MapFile(file, size, Access::kWrite));
  ZEUS_RETURN_IF_ERROR(
      FormatNode(memory.address(), spec, clock_->Now().time_since_epoch().count(), boot_id_));
  // link(2) refuses a name that is taken.
  const std::string self = fmt::format("/proc/self/fd/{}", file.get());
  if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, NodeFile(name).c_str(), AT_SYMLINK_FOLLOW) != 0)
    return errno == EEXIST ? NameTaken(name) : FileError(NodeFile(name), errno);
  return SharedNode(std::string(name), std::move(memory), Access::kWrite, *clock_);
}

Error NodeDirectory::NameTaken(std::string_view name) const {
  const auto existing = Map(name, Access::kRead);
  const std::string what =
      existing.ok() ? "is running already" : "left a file: " + existing.error().message;
  const char* verb = existing.ok() ? "stop" : "remove";
  return {ErrorCode::kUnavailable,
          fmt::format("a simulated node named \"{}\" {}; {} it with: zeus sim stop --name {}", name,
                      what, verb, name)};
}

Error NodeDirectory::NoSuchNode(std::string_view name) const {
  std::string running;
  for (const Entry& entry : List()) {
    if (entry.state.ok()) running += (running.empty() ? "" : ", ") + entry.name;
  }
  const std::string others = running.empty() ? "none is running" : "running: " + running;
  return {
      ErrorCode::kNotFound,
      fmt::format("no simulated node named \"{}\" ({}); start one with: zeus sim start --name {} "
                  "--gpus 4xV100",
                  name, others, name)};
}

Result<NodeMemory> NodeDirectory::Map(std::string_view name, Access access) const {
  const auto path = NodeFile(name);
  const FileDescriptor file = OpenFile(path, access);
  if (!file.valid()) return FileError(path, errno);
  return MapNode(file, access);
}

Result<NodeMemory> NodeDirectory::MapNode(const FileDescriptor& file, Access access) const {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return FileError(directory_, errno);
  if (!S_ISREG(status.st_mode) || status.st_size == 0)
    return Error{ErrorCode::kUnavailable, "the file is damaged (empty or not a file)"};
  ZEUS_TRY(NodeMemory memory, MapFile(file, static_cast<std::size_t>(status.st_size), access));
  ZEUS_RETURN_IF_ERROR(CheckLayout(memory.address(), memory.size()));
  if (BootId(*static_cast<const NodeHeader*>(memory.address())) != boot_id_) {
    return Error{ErrorCode::kUnavailable, "it is of an earlier boot of this machine"};
  }
  return memory;
}

Result<SharedNode> NodeDirectory::Open(std::string_view name, Access access) const {
  ZEUS_RETURN_IF_ERROR(CheckNodeName(name));
  auto memory = Map(name, access);
  if (memory.ok()) return SharedNode(std::string(name), std::move(memory).value(), access, *clock_);
  const Error& error = memory.error();
  if (error.code == ErrorCode::kNotFound) return NoSuchNode(name);
  if (error.code == ErrorCode::kPermissionDenied) {
    return NotYours(name, access == Access::kRead ? "look at" : "change");
  }
  return Unusable(name, error).While(fmt::format("simulated node \"{}\"", name));
}

Status NodeDirectory::Remove(std::string_view name) const {
  ZEUS_RETURN_IF_ERROR(CheckNodeName(name));
  const auto path = NodeFile(name);
  const FileDescriptor file = OpenFile(path, Access::kWrite);
  if (!file.valid()) {
    // A name that is not a regular file (a link, say) has no processes to notify.
    if (errno != ENOENT && errno != EACCES && errno != EPERM) return Unlink(name);
    return errno == ENOENT ? NoSuchNode(name) : NotYours(name, "stop");
  }
  // The process that stops a node holds the lock of its file, which is released even when that
  // process dies. So the name cannot pass to a new node between the check and unlink(2).
  while (::flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  if (!IsFileStillNamed(path, file)) return NoSuchNode(name);
  if (auto memory = MapNode(file, Access::kWrite); memory.ok())
    SharedNode(std::string(name), std::move(memory).value(), Access::kWrite, *clock_).MarkStopped();
  return Unlink(name);
}

Status NodeDirectory::Unlink(std::string_view name) const {
  if (::unlink(NodeFile(name).c_str()) == 0) return Ok();
  if (errno == ENOENT) return NoSuchNode(name);
  if (errno == EACCES || errno == EPERM) return NotYours(name, "stop");
  return FileError(NodeFile(name), errno).While("stop simulated node");
}

std::vector<NodeDirectory::Entry> NodeDirectory::List() const {
  std::vector<Entry> entries;
  std::error_code ignored;
  std::filesystem::directory_iterator file(directory_, ignored);
  for (; file != std::filesystem::directory_iterator(); file.increment(ignored)) {
    const std::string base = file->path().filename().string();
    if (!base.starts_with(kPrefix)) continue;
    std::string name = base.substr(kPrefix.size());
    if (!CheckNodeName(name).ok()) continue;
    const auto memory = Map(name, Access::kRead);
    entries.push_back(
        {std::move(name),
         memory.ok() ? Ok() : Status(Unusable(base.substr(kPrefix.size()), memory.error()))});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

}  // namespace zeus::sim
