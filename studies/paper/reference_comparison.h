#pragma once

#include "studies/paper/claims.h"
#include "studies/paper/study.h"
#include "zeus/report/figure.h"

// Our replays of zeus beside those of the reference's simulator (reference_figures.h).
namespace zeus::replay::paper {

// Each figure of each setting that the reference is known for, and how far ours is from it.
report::Table ReferenceTable(const Study& study);

// How many of them agree.
Claim ReferenceClaim(const Study& study);

}  // namespace zeus::replay::paper
