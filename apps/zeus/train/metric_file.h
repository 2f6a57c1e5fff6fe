#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// A file to which a program appends a line for each epoch. One owner.
class MetricFile {
 public:
  explicit MetricFile(std::filesystem::path path) : path_(std::move(path)) {}

  // Empties it: the epochs of an earlier run are not those of the next one. From now on it is ours:
  // kConflict when another run reports to it. kInvalidArgument when it is no file.
  Status BeginAnew();

  // The lines that were completed since the last call. Of a line of more than 64 KB the end.
  std::vector<std::string> NewLines();
  // And what the file ended with.
  std::vector<std::string> LastLines();

  const std::filesystem::path& path() const { return path_; }

 private:
  void CutLines(std::vector<std::string>& lines);

  std::filesystem::path path_;
  std::optional<FileDescriptor> held_{};  // Locked.
  std::uint64_t read_ = 0;                // Bytes …
  std::uint64_t inode_ = 0;               // … of this file: another one is read from its start.
  std::string pending_;
};

}  // namespace zeus::cli
