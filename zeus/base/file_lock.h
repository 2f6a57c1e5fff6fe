#pragma once

#include <filesystem>
#include <memory>

#include "zeus/base/result.h"

namespace zeus {

// An exclusive lock on a file that says "this process is alive and at it". The kernel drops it when
// the process ends, however it ends, and everybody who shares the file system sees so, also from
// another pid namespace (an open file description lock, see fcntl(2)). A fork()ed child does not
// inherit it. Thread-safe; one owner.
class FileLock {
 public:
  // Makes the file if need be, for its owner only. kUnavailable while somebody holds the lock, this
  // process included.
  static Result<std::unique_ptr<FileLock>> TryTake(const std::filesystem::path& file);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Whether anybody holds the lock, this process included. Takes nothing. False without the file.
  static Result<bool> IsHeld(const std::filesystem::path& file);

 private:
  explicit FileLock(int descriptor);
  static void CloseAllInForkedChild();

  int descriptor_;
};

}  // namespace zeus
