#pragma once

#include <string>

#include "apps/zeus/job/lessons.h"

namespace zeus::cli {

// One self-contained page: what was chosen, what that saves, cost by recurrence, beliefs, and all
// runs. `baseline` as in SummaryText().
std::string ToHtml(const Lessons& lessons, const Lessons* baseline);

}  // namespace zeus::cli
