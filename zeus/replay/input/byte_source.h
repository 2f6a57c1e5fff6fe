#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "zeus/base/result.h"

namespace zeus::replay {

// Bytes in order, from wherever. One owner.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills the front of `space`, which is not empty, and says how much of it; 0 at the end. Errors
  // name the file.
  virtual Result<std::size_t> Read(std::span<char> space) = 0;
};

// What a file holds, unpacked if it is packed as xz, gzip or zstd. Its first bytes tell, not its
// name. Needs no more memory for a large file than for a small one; pipes will do too. A file that
// was cut off or damaged is kInvalidArgument, found when the reading gets there.
Result<std::unique_ptr<ByteSource>> OpenFile(const std::filesystem::path& path);

// Bytes that are at hand.
std::unique_ptr<ByteSource> BytesOf(std::string bytes);

}  // namespace zeus::replay
