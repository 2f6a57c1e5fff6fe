#pragma once

#include <cstdint>
#include <filesystem>

#include "zeus/base/result.h"

namespace zeus::server {

// Whether a file can be read without waiting for anybody. kInvalidArgument for pipes, folders and
// devices.
Status CheckRegularFile(const std::filesystem::path& path);

// Which content a path has, as far as that can be told without reading it: another one, or the same
// file written again, has another stamp. A path without a file has one, too.
struct FileStamp {
  std::int64_t device = 0;
  std::int64_t number = 0;
  std::int64_t size = -1;
  std::int64_t modified = 0;  // Nanoseconds.
  std::int64_t changed = 0;   // Nanoseconds; also by chmod.

  static FileStamp Of(const std::filesystem::path& path);
  bool operator==(const FileStamp&) const = default;
};

}  // namespace zeus::server
