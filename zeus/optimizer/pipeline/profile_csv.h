#pragma once

#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/profile.h"

namespace zeus::pipeline {

// Reads what profilers write, the reference's among them: a header that names at least stage,
// instruction, frequency (MHz), time (s) and energy (J), in any order, then one row for each
// operating point. With the columns rank, dp_rank, pp_rank and tp_rank every rank has rows of its
// own: a stage takes as long as its slowest rank and as much as all of them together (tensor
// parallel); replicas (data parallel) are averaged in energy, and the slowest counts in time.
// The blocking power is not in the file. kInvalidArgument names the line.
Result<PipelineProfile> ParseProfileCsv(std::string_view text);

// stage,instruction,frequency,time,energy
std::string ToCsv(const PipelineProfile& profile);

}  // namespace zeus::pipeline
