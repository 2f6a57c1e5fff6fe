#pragma once

#include <filesystem>
#include <memory>

#include "zeus/base/result.h"

namespace zeus {

// An exclusive lock on a file, which shows that this process is alive and working. The kernel drops
// it when the process ends, however it ends. Every process that sees the file system notices, also
// in another pid namespace (an open file description lock, see fcntl(2)). A fork()ed child does not
// inherit it. Thread-safe; one owner.
class FileLock {
 public:
  // Creates the file when it is missing, readable by its owner only. kUnavailable while the lock is
  // held, also by this process.
  static Result<std::unique_ptr<FileLock>> TryTake(const std::filesystem::path& file);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Whether the lock is held, also by this process. Does not acquire it. False without the file.
  static Result<bool> IsHeld(const std::filesystem::path& file);

 private:
  explicit FileLock(int descriptor);
  static void CloseAllInForkedChild();

  int descriptor_;
};

}  // namespace zeus
