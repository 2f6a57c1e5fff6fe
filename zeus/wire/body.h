#pragma once

#include <string_view>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"

// Text from the other end of a connection.
namespace zeus::wire {

// Nothing that we exchange is nested more deeply.
inline constexpr int kDeepestNesting = 16;

// A body that is one JSON object. kInvalidArgument names the field where it stops being JSON, as
// with NaN and infinities, which JSON does not have.
Result<Json> ParseBody(std::string_view text);

}  // namespace zeus::wire
