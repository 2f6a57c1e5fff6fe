#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "zeus/base/result.h"

namespace zeus::replay {

// A stream of bytes: a file, a compressed file or memory. Not thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills the front of `space`, which must not be empty, and returns the number of bytes; 0 at the
  // end. Errors name the file.
  virtual Result<std::size_t> Read(std::span<char> space) = 0;
};

// Opens a file and decompresses it if its first bytes (not its name) are those of xz, gzip or zstd.
// Memory use does not grow with the file, and pipes work too. A truncated or damaged file is
// reported as kInvalidArgument when the reading reaches the damage.
Result<std::unique_ptr<ByteSource>> OpenFile(const std::filesystem::path& path);

// Returns a source that reads from memory.
std::unique_ptr<ByteSource> ReadFromMemory(std::string bytes);

}  // namespace zeus::replay
