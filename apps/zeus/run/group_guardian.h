#pragma once

#include <sys/types.h>

#include <memory>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// A process that does nothing but wait for this one to end, and kills a process group when it ended
// without saying so: after a SIGKILL of Zeus no part of the command lives on unwatched. One owner.
class GroupGuardian {
 public:
  // kUnavailable when no process can be made.
  static Result<std::unique_ptr<GroupGuardian>> Watch(pid_t group);
  // The group is let go.
  ~GroupGuardian();
  GroupGuardian(const GroupGuardian&) = delete;
  GroupGuardian& operator=(const GroupGuardian&) = delete;

 private:
  GroupGuardian(pid_t pid, int line) : pid_(pid), line_(line) {}

  pid_t pid_;
  FileDescriptor line_;  // Closes when this process ends, however it ends.
};

}  // namespace zeus::cli
