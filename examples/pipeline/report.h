#pragma once

#include <string>

#include "examples/pipeline/options.h"
#include "examples/pipeline/stage_training.h"
#include "zeus/base/json.h"

namespace zeus::examples {

std::string ToText(const Outcome& outcome, const Options& options, double time_scale);
Json ToJson(const Outcome& outcome, const Options& options);

}  // namespace zeus::examples
