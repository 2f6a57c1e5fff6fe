#pragma once

#include <string>

#include "apps/zeus/job/lessons.h"
#include "apps/zeus/job/series_plot.h"

namespace zeus::cli {

// Cost and batch size of every recurrence.
SeriesPlot PlotOf(const Lessons& lessons);

// The cost of every recurrence as a bar, for the terminal: at most `rows` of the latest, with their
// batch sizes. Empty when there is none.
std::string ToTextPlot(const Lessons& lessons, std::size_t rows);

}  // namespace zeus::cli
