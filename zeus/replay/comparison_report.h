#pragma once

#include "zeus/replay/job_comparison.h"
#include "zeus/report/figure.h"

namespace zeus::replay {

// The comparison for people: a table, cumulative regret over recurrences, and what the last five of
// them take.
report::Report MakeReport(const JobComparison& comparison);

}  // namespace zeus::replay
