#pragma once

#include <string_view>

#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// Parses a whole problem: profile, cost models, nodes and edges (docs/formats.md). The text is not
// trusted: kInvalidArgument names the field that is wrong.
Result<Problem> ParseInstance(std::string_view text);

}  // namespace zeus::pipeline
