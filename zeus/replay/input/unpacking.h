#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/replay/input/byte_source.h"

// Decompresses the three formats in which traces are distributed.
namespace zeus::replay {

enum class Packing { kXz, kGzip, kZstd };

inline constexpr std::size_t kLongestSignature = 6;

// Detects the format from the first bytes; nullopt: not compressed.
std::optional<Packing> DetectPacking(std::string_view start);

// Returns the decompressed bytes of `packed`. Several compressed files in a row count as one.
// `name` appears in error messages.
Result<std::unique_ptr<ByteSource>> Unpack(Packing packing, std::string name,
                                           std::unique_ptr<ByteSource> packed);

}  // namespace zeus::replay
