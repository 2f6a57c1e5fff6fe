#pragma once

#include <string>

#include "apps/zeus/profile/sweep_report.h"

namespace zeus::cli {

enum class Glyphs { kAscii, kUnicode };

// A plot for the terminal: energy and time per step against the setting, in per cent of those at
// the highest one, with error bars where they can be seen. Power where steps are unknown. Empty for
// fewer than two settings.
std::string ToTextPlot(const SweepReport& report, Glyphs glyphs);

}  // namespace zeus::cli
