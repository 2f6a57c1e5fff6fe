#pragma once

#include <string>

#include "apps/zeus/job/lessons.h"
#include "zeus/base/result.h"
#include "zeus/report/figure.h"

namespace zeus::cli {

// The whole page of a job: choice and savings, cost by recurrence, beliefs about batch sizes, and
// all runs.
report::Report ToReport(const Lessons& lessons);

// ToReport() as one self-contained page.
Result<std::string> ToHtml(const Lessons& lessons);

// The cost of every recurrence as a bar, for the terminal: at most `rows` of the latest, with their
// batch sizes. Empty when there is none.
std::string ToTextPlot(const Lessons& lessons, std::size_t rows);

}  // namespace zeus::cli
