#pragma once

#include <string>

#include "apps/zeus/profile/sweep_report.h"

namespace zeus::cli {

// A plot as SVG: a panel each for energy and time per step against the setting (one for power where
// steps are unknown), with error bars of one standard deviation and a letter at each row that an
// objective chooses. Light or dark as the reader prefers; title and description for those who do
// not see it.
std::string ToSvg(const SweepReport& report);

// "A", "B", … for the rows that an objective chooses, in the order of the rows; else empty.
std::string LetterOf(const SweepReport& report, std::size_t row);

}  // namespace zeus::cli
