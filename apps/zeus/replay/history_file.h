#pragma once

#include <filesystem>

#include "zeus/base/result.h"
#include "zeus/replay/history/run_history.h"

namespace zeus::cli {

// What `zeus job export` writes (docs/formats.md); "-" is standard input. kInvalidArgument names
// the line that is wrong.
Result<replay::RunHistory> ReadHistory(const std::filesystem::path& path);

}  // namespace zeus::cli
