#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "zeus/base/result.h"

namespace zeus {

// The file of the running program. Where a loader was started with the program as its argument, as
// the tarball for other distributions does, the kernel names the loader instead; then it is the
// file that the loader was told to call the program (--argv0).
Result<std::filesystem::path> OwnProgram();

// The command line that started this process, the name of the program included, without a loader
// in front of it.
Result<std::vector<std::string>> OwnCommandLine();

}  // namespace zeus
