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

// A text in blocks of whole lines. One owner.
class TextSource {
 public:
  // A file, also a packed one (OpenFile).
  static Result<TextSource> Open(const std::filesystem::path& path);

  // `name` is for messages.
  TextSource(std::string name, std::unique_ptr<ByteSource> bytes);

  // The next lines, with their ends (the last line of a text may have none); empty at the end.
  // Valid until the next call. A line of more than 16 MB is kInvalidArgument: that is no text.
  Result<std::string_view> NextLines();

  const std::string& name() const { return name_; }
  std::int64_t bytes_read() const { return bytes_read_; }  // Unpacked.

 private:
  std::string name_;
  std::unique_ptr<ByteSource> bytes_;
  std::vector<char> block_;
  std::size_t given_ = 0;   // The first so many bytes of the block were given away.
  std::size_t filled_ = 0;  // So many bytes of it hold text.
  std::int64_t bytes_read_ = 0;
};

}  // namespace zeus::replay
