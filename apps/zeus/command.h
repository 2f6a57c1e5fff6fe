#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/zeus/command_line.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// The action of a verb, called once the command line is parsed. The value is the exit code; an
// error is printed as one sentence on standard error, and its code determines the exit code
// (exit_code.h).
using Action = std::function<Result<int>()>;

// Everything after the first "--" on the command line of a verb that runs a command. Zeus does not
// interpret these words.
struct CommandTail {
  bool present = false;
  std::vector<std::string> words{};
};

}  // namespace zeus::cli
