#pragma once

#include <string>

#include "apps/zeus/profile/sweep_report.h"

namespace zeus::cli {

// One self-contained page: plot, table with the same numbers, what was measured where and when.
// Nothing is loaded from elsewhere.
std::string ToHtml(const SweepReport& report);

}  // namespace zeus::cli
