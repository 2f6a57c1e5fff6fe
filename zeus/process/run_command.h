#pragma once

#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus {

// The end of a command.
struct CommandOutcome {
  bool timed_out = false;
  int status = 0;        // As waitpid() gives it.
  std::string output{};  // Standard output and standard error: at most 64 KiB from the beginning.
};

// Runs a command without a shell, and without input, and waits for it. One that takes longer than
// `timeout` is killed with all that it started. kNotFound when there is no such program.
Result<CommandOutcome> RunCommand(const std::vector<std::string>& command, Seconds timeout);

}  // namespace zeus
