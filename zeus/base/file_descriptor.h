#pragma once

#include <unistd.h>

namespace zeus {

// Owns what open(2) returned, and closes it. One owner.
class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (valid()) ::close(descriptor_);
  }

  int get() const { return descriptor_; }
  bool valid() const { return descriptor_ >= 0; }  // Else open(2) failed.

 private:
  const int descriptor_;
};

}  // namespace zeus
