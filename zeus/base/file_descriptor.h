#pragma once

#include <unistd.h>

namespace zeus {

// Owns an open file descriptor and closes it. One owner.
class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (valid()) ::close(descriptor_);
  }

  int get() const { return descriptor_; }
  bool valid() const { return descriptor_ >= 0; }  // False when open(2) failed.

 private:
  const int descriptor_;
};

}  // namespace zeus
