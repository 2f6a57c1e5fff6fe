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
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"

namespace zeus::activity {
namespace {

constexpr Seconds kLockTimeout{1};
constexpr Seconds kLockRetry{0.001};
constexpr int kAttempts = 10;  // To open the file while other processes replace it.

Error Unusable(const std::filesystem::path& path, std::string_view why) {
  return {ErrorCode::kUnavailable,
          fmt::format("{} {}: remove it when no program that measures runs",
                      Printable(path.string()), why)};
}

// A lock that every user of the file holds as long as it has it open, also in other pid name
// spaces: shared, beside the short one of flock(). False when others hold it.
bool SetUseLock(int descriptor, short kind) {
  struct flock lock {};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  return ::fcntl(descriptor, F_OFD_SETLK, &lock) == 0;
}

// Returns a process that has mapped the file. Versions of Zeus that do not know the lock of use
// are found like this, in our pid name space.
std::optional<std::string> FindUser(const std::filesystem::path& path, ino_t inode) {
  const std::string number = fmt::format(" {} ", inode);
  const std::string name = "/" + path.filename().string();
  std::error_code failure;
  for (std::filesystem::directory_iterator folder("/proc", failure), end; !failure && folder != end;
       folder.increment(failure)) {
    const std::string process = folder->path().filename().string();
    if (process.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream maps(folder->path() / "maps");
    for (std::string line; std::getline(maps, line);)
      if (line.ends_with(name) && line.find(number) != std::string::npos) return process;
  }
  return std::nullopt;
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

Result<std::unique_ptr<ActivityFile>> ActivityFile::OpenOnce(const std::filesystem::path& path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  constexpr mode_t kOwnerOnly = 0600;
  const int descriptor = ::open(path.c_str(), kFlags, kOwnerOnly);
  if (descriptor < 0) return errno == ELOOP ? Unusable(path, "is a link") : FileError(path, errno);
  std::unique_ptr<ActivityFile> file(new ActivityFile(path, descriptor));
  ZEUS_RETURN_IF_ERROR(file->CheckOwner());
  return file;
}

Result<std::unique_ptr<ActivityFile>> ActivityFile::Open(const std::filesystem::path& path,
                                                         Clock& clock) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    ZEUS_TRY(auto file, OpenOnce(path));
    ZEUS_TRY(const State state, file->Prepare(clock));
    if (state == State::kUsable) return file;
  }
  return Unusable(path, "is replaced again and again");
}

// Under the lock of the file. Another process may have replaced the file while we waited for it.
Result<ActivityFile::State> ActivityFile::Prepare(Clock& clock) {
  ZEUS_TRY(const Lock lock, Acquire(clock));
  ZEUS_TRY(const bool still_there, IsStillThere());
  if (!still_there) return State::kReplaced;
  ZEUS_TRY(const State state, FormatOrCheck());
  if (state == State::kUsable) {
    ZEUS_RETURN_IF_ERROR(MarkInUse());
    return state;
  }
  if (layout_ != nullptr) ::munmap(std::exchange(layout_, nullptr), sizeof(Layout));
  ZEUS_RETURN_IF_ERROR(RemoveUnlessInUse());
  return State::kReplaced;
}

Result<bool> ActivityFile::IsStillThere() const {
  struct stat opened {};
  struct stat named {};
  if (::fstat(file_.get(), &opened) != 0) return FileError(path_, errno);
  if (::lstat(path_.c_str(), &named) != 0) {
    if (errno == ENOENT) return false;
    return FileError(path_, errno);
  }
  return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// The file is removed and not rewritten: a user of it that is not seen here keeps what it has
// mapped.
Status ActivityFile::RemoveUnlessInUse() {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) return FileError(path_, errno);
  constexpr std::string_view kWhy = "is damaged or of another version of Zeus";
  if (const auto process = FindUser(path_, status.st_ino))
    return Unusable(path_, fmt::format("{}, and process {} uses it", kWhy, *process));
  if (!SetUseLock(file_.get(), F_WRLCK))
    return Unusable(path_, fmt::format("{}, and a process uses it", kWhy));
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) return FileError(path_, errno);
  log::Info("{} {}: replaced it, since nobody uses it", Printable(path_.string()), kWhy);
  return Ok();
}

Status ActivityFile::MarkInUse() {
  if (SetUseLock(file_.get(), F_RDLCK)) return Ok();
  return FileError(path_, errno).While("lock");
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
  const TimePoint deadline = clock.Now() + kLockTimeout;
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

// Every process comes here under the lock, so half a header means that its author died.
Result<ActivityFile::State> ActivityFile::FormatOrCheck() {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) return FileError(path_, errno);
  const bool fresh = status.st_size == 0;
  if (fresh && ::ftruncate(file_.get(), sizeof(Layout)) != 0) return FileError(path_, errno);
  if (!fresh && static_cast<std::size_t>(status.st_size) != sizeof(Layout)) return State::kUnknown;
  ZEUS_RETURN_IF_ERROR(Reserve(0, offsetof(Layout, journals)));
  ZEUS_RETURN_IF_ERROR(Map());
  Header& header = layout_->header;
  if (header.magic == 0 && header.key_count == 0) {
    header.fingerprint = kFingerprint;
    header.magic = kMagic;
    return State::kUsable;
  }
  if (header.magic != kMagic || header.fingerprint != kFingerprint || header.key_count > kKeys ||
      header.slots_in_use.load() > kSlots)
    return State::kUnknown;
  return State::kUsable;
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
