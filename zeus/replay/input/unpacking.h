#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/replay/input/byte_source.h"

// The three ways of packing that traces come in.
namespace zeus::replay {

enum class Packing { kXz, kGzip, kZstd };

inline constexpr std::size_t kLongestSignature = 6;

// By the first bytes; nullopt: not packed.
std::optional<Packing> PackingOf(std::string_view start);

// What `packed` holds; several packed files one after the other are one. `name` is for messages.
Result<std::unique_ptr<ByteSource>> Unpack(Packing packing, std::string name,
                                           std::unique_ptr<ByteSource> packed);

}  // namespace zeus::replay
