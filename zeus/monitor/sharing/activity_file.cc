#include "zeus/monitor/sharing/activity_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/text.h"

namespace zeus::activity {
namespace {

constexpr Seconds kLockPatience{1};
constexpr Seconds kLockRetry{0.001};

Error Unusable(const std::filesystem::path& path, std::string_view why) {
  return {ErrorCode::kUnavailable,
          fmt::format("{} {}: remove it when no program that measures runs",
                      Printable(path.string()), why)};
}

}  // namespace

ActivityFile::Lock::~Lock() {
  if (descriptor_ >= 0) ::flock(descriptor_, LOCK_UN);
}

ActivityFile::ActivityFile(std::filesystem::path path, int descriptor)
    : path_(std::move(path)), file_(descriptor) {}

ActivityFile::~ActivityFile() {
  if (layout_ != nullptr) ::munmap(layout_, sizeof(Layout));
}

Result<std::unique_ptr<ActivityFile>> ActivityFile::Open(const std::filesystem::path& path,
                                                         Clock& clock) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  constexpr mode_t kOwnerOnly = 0600;
  const int descriptor = ::open(path.c_str(), kFlags, kOwnerOnly);
  if (descriptor < 0) return errno == ELOOP ? Unusable(path, "is a link") : FileError(path, errno);
  std::unique_ptr<ActivityFile> file(new ActivityFile(path, descriptor));
  ZEUS_RETURN_IF_ERROR(file->CheckOwner());
  ZEUS_TRY(const Lock lock, file->Acquire(clock));
  ZEUS_RETURN_IF_ERROR(file->FormatOrCheck());
  return file;
}

// Checks that the file is ours: in a directory that is writable for all, another user could have
// created it first.
Status ActivityFile::CheckOwner() const {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) return FileError(path_, errno);
  if (!S_ISREG(status.st_mode)) return Unusable(path_, "is not a file");
  if (status.st_uid == ::geteuid() && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0) return Ok();
  return Error{ErrorCode::kPermissionDenied,
               fmt::format("{} does not belong to this user alone: have it removed, or set "
                           "ZEUS_ACTIVITY_DIR to a directory of yours",
                           Printable(path_.string()))};
}

Result<ActivityFile::Lock> ActivityFile::Acquire(Clock& clock) {
  const TimePoint deadline = clock.Now() + kLockPatience;
  while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return FileError(path_, errno);
    if (clock.Now() > deadline) return Unusable(path_, "is held by a process that does not go on");
    clock.SleepFor(kLockRetry);
  }
  return Lock(file_.get());
}

Status ActivityFile::Reserve(std::size_t offset, std::size_t size) {
  const int failure =
      ::posix_fallocate(file_.get(), static_cast<off_t>(offset), static_cast<off_t>(size));
  return failure == 0 ? Ok() : Status(FileError(path_, failure).While("reserve shared memory"));
}

Status ActivityFile::ReserveJournal(std::size_t slot) {
  return Reserve(offsetof(Layout, journals) + slot * sizeof(Journal), sizeof(Journal));
}

Status ActivityFile::Map() {
  void* address =
      ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (address == MAP_FAILED) return FileError(path_, errno).While("map shared memory");
  layout_ = static_cast<Layout*>(address);
  return Ok();
}

// Everybody passes here under the lock, so half a header means that its author died.
Status ActivityFile::FormatOrCheck() {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) return FileError(path_, errno);
  const bool fresh = status.st_size == 0;
  if (fresh && ::ftruncate(file_.get(), sizeof(Layout)) != 0) return FileError(path_, errno);
  if (!fresh && static_cast<std::size_t>(status.st_size) != sizeof(Layout))
    return Unusable(path_, "is damaged or of another version of Zeus");
  ZEUS_RETURN_IF_ERROR(Reserve(0, offsetof(Layout, journals)));
  ZEUS_RETURN_IF_ERROR(Map());
  Header& header = layout_->header;
  if (header.magic == 0 && header.key_count == 0) {
    header.fingerprint = kFingerprint;
    header.magic = kMagic;
    return Ok();
  }
  if (header.magic != kMagic || header.fingerprint != kFingerprint || header.key_count > kKeys ||
      header.slots_in_use.load() > kSlots)
    return Unusable(path_, "is damaged or of another version of Zeus");
  return Ok();
}

Result<std::filesystem::path> DefaultActivityPath() {
  const std::string name = fmt::format("zeus-activity-{}", ::geteuid());
  std::error_code ignored;
  if (const char* chosen = std::getenv("ZEUS_ACTIVITY_DIR"); chosen != nullptr && *chosen != 0) {
    if (std::filesystem::is_directory(chosen, ignored)) return std::filesystem::path(chosen) / name;
    return Error{ErrorCode::kNotFound, fmt::format("ZEUS_ACTIVITY_DIR: {} is not a directory that "
                                                   "can be reached; create it or unset the "
                                                   "variable",
                                                   Quote(chosen))};
  }
  const std::filesystem::path shared_memory = "/dev/shm";
  if (::access(shared_memory.c_str(), W_OK | X_OK) == 0) return shared_memory / name;
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && *runtime != 0)
    return std::filesystem::path(runtime) / name;
  return Error{ErrorCode::kNotFound,
               "there is neither /dev/shm nor XDG_RUNTIME_DIR to share activity in: set "
               "ZEUS_ACTIVITY_DIR to a directory of yours"};
}

}  // namespace zeus::activity
