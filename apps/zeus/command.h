#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/zeus/command_line.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// What a verb does once the command line is parsed. The value is the exit code; an error becomes
// one sentence on standard error and the exit code of its kind (exit_code.h).
using Action = std::function<Result<int>()>;

// What follows the first "--" on the command line of a verb that runs a command: the command's own
// words, which nobody else reads.
struct CommandTail {
  bool present = false;
  std::vector<std::string> words{};
};

}  // namespace zeus::cli
