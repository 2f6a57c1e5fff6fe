#pragma once

#include <vector>

#include "zeus/optimizer/pipeline/profile.h"

namespace zeus::pipeline {

// Which of the profiled stages each of the wanted ones is like: spread evenly, with the first and
// the last; where there are more than were measured, those in between repeat, for they are the
// alike ones. Both at least 1.
std::vector<int> SpreadStages(int wanted, int profiled);

// A pipeline of these stages of the profile, each below its number of stages.
PipelineProfile WithStages(const PipelineProfile& profile, const std::vector<int>& stages);

}  // namespace zeus::pipeline
