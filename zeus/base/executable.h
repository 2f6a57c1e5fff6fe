#pragma once

#include <filesystem>
#include <string>

#include "zeus/base/result.h"
#include "zeus/base/user_files.h"

namespace zeus {

// The file that execvp() would run for the first word of a command: the word itself where it has a
// slash, else the first of that name in the folders of PATH. kNotFound when there is none,
// kNotSupported when it may not be executed.
Result<std::filesystem::path> FindExecutable(const std::string& command,
                                             const Environment& environment = ProcessEnvironment());

// The error that FindExecutable() would return, for a command whose exec() failed with this errno.
Error CannotExecute(const std::string& command, int reason);

}  // namespace zeus
