#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/replay/input/byte_source.h"

namespace zeus::replay {

// Delivers a text in blocks of whole lines. Not thread-safe.
class TextSource {
 public:
  // Opens a file, which may be compressed (OpenFile).
  static Result<TextSource> Open(const std::filesystem::path& path);

  // `name` appears in error messages.
  TextSource(std::string name, std::unique_ptr<ByteSource> bytes);

  // Returns the next lines with their line ends (the last line of a text may have none); empty at
  // the end of the text. The view is valid until the next call. A line of more than 16 MB is
  // kInvalidArgument, because no text has one.
  Result<std::string_view> NextLines();

  const std::string& name() const { return name_; }
  std::int64_t bytes_read() const { return bytes_read_; }  // After decompression.

 private:
  std::string name_;
  std::unique_ptr<ByteSource> bytes_;
  std::vector<char> block_;
  std::size_t given_ = 0;   // Bytes of block_ that were returned already.
  std::size_t filled_ = 0;  // Bytes of block_ that hold text.
  std::int64_t bytes_read_ = 0;
};

}  // namespace zeus::replay
