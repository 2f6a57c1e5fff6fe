#pragma once

#include <string>

#include "apps/zeus/profile/sweep_report.h"
#include "zeus/report/figure.h"

// A SweepReport as figures and tables, drawn by zeus/report.
namespace zeus::cli {

// A panel each for energy and time per step against the setting (one for power where steps are
// unknown), with a band of one standard deviation and a mark at each row that an objective chooses.
report::Figure ToFigure(const SweepReport& report);

// Energy and time per step in per cent of those at the first row, in one panel for the terminal;
// power where steps are unknown.
report::Panel ToRelativePanel(const SweepReport& report);

// The whole page: findings, the figure, a table with the same numbers, and the circumstances.
report::Report ToReport(const SweepReport& report);

}  // namespace zeus::cli
