#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "zeus/base/file.h"
#include "zeus/base/result.h"

// Files that a user named for results: found out early whether they can be written, then written
// whole or not at all.
namespace zeus::cli {

// Whether a file can be created or replaced at `path`. Leaves everything as it was.
Status CheckWritable(const std::filesystem::path& path);

// Replaces the file in one step: readers see the old content or the new one, and a full disk leaves
// the old one. What is no regular file (a pipe, /dev/stderr) is written directly.
Status WriteWhole(const std::filesystem::path& path, std::string_view content);

// Does the same for content that is too large to hold: `write` hands it over in parts.
Status WriteWhole(const std::filesystem::path& path,
                  const std::function<Status(const WritePart& write_part)>& write);

// Appends to the file, after `header` when it is new or empty, in one piece even when several
// processes do so at once.
Status Append(const std::filesystem::path& path, std::string_view header, std::string_view content);

}  // namespace zeus::cli
