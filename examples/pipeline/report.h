#pragma once

#include <string>

#include "examples/pipeline/options.h"
#include "examples/pipeline/stage_training.h"
#include "zeus/base/json_fwd.h"

namespace zeus::examples {

std::string ToText(const StageOutcome& outcome, const RunOptions& options, double time_scale);
Json ToJson(const StageOutcome& outcome, const RunOptions& options);

}  // namespace zeus::examples
