#pragma once

#include <string>

#include "apps/zeus/job/lessons.h"

namespace zeus::cli {

// One self-contained page: what was chosen, what that saves, cost by recurrence, beliefs, and all
// runs.
std::string ToHtml(const Lessons& lessons);

}  // namespace zeus::cli
