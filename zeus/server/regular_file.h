#pragma once

#include <filesystem>

#include "zeus/base/result.h"

namespace zeus::server {

// Whether a file can be read without waiting for anybody. kInvalidArgument for pipes, folders and
// devices.
Status CheckRegularFile(const std::filesystem::path& path);

}  // namespace zeus::server
