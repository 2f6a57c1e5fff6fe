#pragma once

#include <cstdint>
#include <filesystem>

#include "zeus/base/result.h"

namespace zeus::http {

// Returns kInvalidArgument for pipes, folders and devices, and the system's error for a file that
// cannot be read: reading a file that passes never blocks.
Status CheckRegularFile(const std::filesystem::path& path);

// Identifies the content of a path without reading it: the stamp changes when another file takes
// the path or the file is written again. A path without a file has a stamp of its own.
struct FileStamp {
  std::int64_t device = 0;
  std::int64_t number = 0;
  std::int64_t size = -1;
  std::int64_t modified = 0;  // Nanoseconds.
  std::int64_t changed = 0;   // Nanoseconds; chmod changes it, too.

  static FileStamp Of(const std::filesystem::path& path);
  bool operator==(const FileStamp&) const = default;
};

}  // namespace zeus::http
