#pragma once

#include <filesystem>

#include "zeus/base/result.h"
#include "zeus/replay/history/run_history.h"

namespace zeus::cli {

// Reads the output of `zeus job export` (docs/formats.md); "-" is standard input. kInvalidArgument
// names the line that is wrong.
Result<replay::RunHistory> ReadHistory(const std::filesystem::path& path);

}  // namespace zeus::cli
