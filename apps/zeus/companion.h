#pragma once

#include <filesystem>

#include "zeus/base/result.h"

namespace zeus::cli {

// Returns a file that belongs to the running program, as "zeus/sim/libnvidia-ml.so.1". It is looked
// for below lib/ beside the program's folder, in the build tree as in an installation, and in the
// folder of the program itself, for copies of a few files. kNotFound names the usual place.
Result<std::filesystem::path> FindCompanion(const std::filesystem::path& file);

}  // namespace zeus::cli
