#pragma once

#include <cstddef>
#include <string_view>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"

// Text from the other end of a connection.
namespace zeus::wire {

// Nothing that we exchange is nested more deeply.
inline constexpr int kDeepestNesting = 16;

// Values of a request: many that are all small become much larger when they are parsed.
inline constexpr std::size_t kMostValues = std::size_t{1} << 21;

// Fields of one object: looking one up takes a time that grows with their number.
inline constexpr std::size_t kMostFields = 512;

// A body that is one JSON object. kInvalidArgument names the field where it stops being JSON, as
// with NaN and infinities, which JSON does not have.
Result<Json> ParseBody(std::string_view text, std::size_t most_values = kMostValues);

}  // namespace zeus::wire
