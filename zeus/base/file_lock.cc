#include "zeus/base/file_lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"

namespace zeus {
namespace {

// The locks of this process, so that a fork()ed child can close its copies: the lock belongs to the
// open file, and an orphaned child would hold it on behalf of a parent that was killed. Never
// destroyed, because forks may happen while static objects end.
struct HeldLocks {
  std::mutex mutex;
  std::vector<int*> descriptors;  // Guarded by mutex.
};

HeldLocks& Held() {
  static auto* const held = new HeldLocks();
  return *held;
}

struct ::flock WholeFile() {
  struct ::flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

FileLock::FileLock(int descriptor) : descriptor_(descriptor) {
  // The mutex is held during fork(), so that the child finds the list whole.
  static const int kRegistered = ::pthread_atfork(
      [] { Held().mutex.lock(); }, [] { Held().mutex.unlock(); }, [] { CloseAllInForkedChild(); });
  (void)kRegistered;  // Fails only without memory.
  const std::lock_guard lock(Held().mutex);
  Held().descriptors.push_back(&descriptor_);
}

FileLock::~FileLock() {
  const std::lock_guard lock(Held().mutex);
  std::erase(Held().descriptors, &descriptor_);
  if (descriptor_ < 0) return;
  // Unlocked first: a child that is being forked at this moment may still have its copy open.
  struct ::flock all = WholeFile();
  all.l_type = F_UNLCK;
  (void)::fcntl(descriptor_, F_OFD_SETLK, &all);
  ::close(descriptor_);
}

void FileLock::CloseAllInForkedChild() {
  for (int* const descriptor : Held().descriptors) {
    ::close(*descriptor);
    *descriptor = -1;
  }
  Held().descriptors.clear();
  Held().mutex.unlock();
}

Result<std::unique_ptr<FileLock>> FileLock::TryTake(const std::filesystem::path& file) {
  constexpr mode_t kOwnerOnly = 0600;
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  const int descriptor = ::open(file.c_str(), kFlags, kOwnerOnly);
  if (descriptor < 0) return FileError(file, errno);
  std::unique_ptr<FileLock> taken(new FileLock(descriptor));
  struct ::flock lock = WholeFile();
  if (::fcntl(descriptor, F_OFD_SETLK, &lock) == 0) return taken;
  if (errno == EAGAIN || errno == EACCES)
    return Error{ErrorCode::kUnavailable, file.string() + " is locked by another process"};
  return FileError(file, errno);
}

Result<bool> FileLock::IsHeld(const std::filesystem::path& file) {
  const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!opened.valid()) {
    if (errno == ENOENT) return false;
    return FileError(file, errno);
  }
  struct ::flock lock = WholeFile();
  if (::fcntl(opened.get(), F_OFD_GETLK, &lock) != 0) return FileError(file, errno);
  return lock.l_type != F_UNLCK;
}

}  // namespace zeus
