#pragma once

#include <functional>

#include "apps/zeus/command_line.h"
#include "apps/zeus/manual/man_page.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// Declares `manual` and `completion`, which print man pages and scripts for shells, made from what
// the verbs of `line` declare. Call it after all other verbs; `line` must outlive the action.
void AddManualVerbs(CommandLine& line, std::function<Result<int>()>& action, ManPageFrame frame);

}  // namespace zeus::cli
