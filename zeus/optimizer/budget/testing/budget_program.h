#pragma once

#include <optional>

#include "zeus/optimizer/budget/problem.h"

namespace zeus::water_filling {

// Whether the tests were built with GLPK.
bool HasLinearPrograms();

// Returns the least sum of weight x GPUs x (slowdown - 1) by a general solver of linear programs,
// where limits may have any fraction and slowdown bounds do not count; nullopt when not even the
// lowest limits fit. Needs HasLinearPrograms().
std::optional<double> LeastLoss(const Problem& problem);

}  // namespace zeus::water_filling
