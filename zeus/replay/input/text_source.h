#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// Decompresses the three formats in which traces are distributed.

enum class Packing { kXz, kGzip, kZstd };

inline constexpr std::size_t kLongestSignature = 6;

// Detects the format from the first bytes; nullopt: not compressed.
std::optional<Packing> DetectPacking(std::string_view start);

// Returns the decompressed bytes of `packed`. Several compressed files in a row count as one.
// `name` appears in error messages.
Result<std::unique_ptr<ByteSource>> Unpack(Packing packing, std::string name,
                                           std::unique_ptr<ByteSource> packed);

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
