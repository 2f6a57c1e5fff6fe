#pragma once

#include "zeus/report/figure.h"

namespace zeus::report::testing {

// One of everything: each mark, both kinds of axes, a heat map with a search, tables.
Report SampleReport();

// Reports that must survive: nothing at all, numbers that are none, one point, 100,000 points,
// names that would end an element, sixty figures.
Report AdverseReport();

}  // namespace zeus::report::testing
