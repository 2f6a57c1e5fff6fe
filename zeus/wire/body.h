#pragma once

#include <cstddef>
#include <string_view>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"

// Parses the JSON bodies of requests and answers, with limits against hostile ones.
namespace zeus::wire {

// The deepest nesting that is accepted: no message of ours needs more.
inline constexpr int kDeepestNesting = 16;

// The greatest number of values in a request: many small values take much memory when parsed.
inline constexpr std::size_t kMostValues = std::size_t{1} << 21;

// The greatest number of fields of one object: the time to look up a field grows with it.
inline constexpr std::size_t kMostFields = 512;

// Parses a body, which is one JSON object. Otherwise the error is kInvalidArgument, with the name
// of the field whose value is not JSON. NaN and infinities are not JSON.
Result<Json> ParseBody(std::string_view text, std::size_t most_values = kMostValues);

}  // namespace zeus::wire
