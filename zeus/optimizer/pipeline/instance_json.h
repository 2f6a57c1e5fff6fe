#pragma once

#include <string_view>

#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// A whole problem in one file: profile, cost models, nodes and edges (docs/formats.md). Text from
// outside: kInvalidArgument names the field.
Result<Problem> ParseInstance(std::string_view text);

}  // namespace zeus::pipeline
