#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace zeus::testing {

// Runs `check` in a forked child; true if it returned true there.
inline bool HoldsInAChild(const std::function<bool()>& check) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace zeus::testing
