#pragma once

#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/profile.h"

namespace zeus::pipeline {

// Parses the files that profilers write, also Perseus' profiler. A header names at least stage,
// instruction, frequency (MHz), time (s) and energy (J), in any order; one row follows for each
// operating point. With the columns rank, dp_rank, pp_rank and tp_rank every rank has rows of its
// own. The time of a stage is then that of its slowest rank, and its energy the sum over its tensor
// parallel ranks, averaged over data parallel replicas. The blocking power is not in the file.
// kInvalidArgument names the line.
Result<PipelineProfile> ParseProfileCsv(std::string_view text);

// Returns the columns stage,instruction,frequency,time,energy.
std::string ToCsv(const PipelineProfile& profile);

}  // namespace zeus::pipeline
