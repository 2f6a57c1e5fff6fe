#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace zeus::cli {

// A file in which a program tells how far it is: the number on its last line, or, where that line
// is no number, how many lines there are. One owner.
class ProgressFile {
 public:
  explicit ProgressFile(std::filesystem::path path) : path_(std::move(path)) {}

  // The count by now; nullopt while there is no file, or nothing in it.
  std::optional<double> Count();

 private:
  std::filesystem::path path_;
  // Lines are counted once: the file may be a long log.
  std::uint64_t counted_bytes_ = 0;
  std::uint64_t lines_ = 0;
};

}  // namespace zeus::cli
