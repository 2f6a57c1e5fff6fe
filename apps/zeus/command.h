#pragma once

#include <CLI/CLI.hpp>

#include <functional>

#include "zeus/base/result.h"

namespace zeus::cli {

// What a verb does once the command line is parsed. The value is the exit code; an error becomes
// one sentence on standard error and the exit code of its kind (exit_code.h).
using Action = std::function<Result<int>()>;

// Every verb has one function AddXxxCommand(app, action) that declares its options and, when the
// verb is chosen, sets `action`.

}  // namespace zeus::cli
