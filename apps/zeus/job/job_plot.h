#pragma once

#include <string>

#include "apps/zeus/job/lessons.h"
#include "zeus/report/figure.h"

namespace zeus::cli {

// Cost and batch size of every recurrence.
report::Figure PlotOf(const Lessons& lessons);

// The cost of every recurrence as a bar, for the terminal: at most `rows` of the latest, with their
// batch sizes. Empty when there is none.
std::string ToTextPlot(const Lessons& lessons, std::size_t rows);

}  // namespace zeus::cli
