#pragma once

#include <optional>

#include "zeus/optimizer/pipeline/testing/random_problem.h"

namespace zeus::pipeline {

// Whether the tests were built with GLPK.
bool HasLinearPrograms();

// Returns the least effective energy of a problem within a time, by a general solver of linear
// programs; nullopt when the time is too short. Needs HasLinearPrograms().
std::optional<Joules> LeastEffectiveEnergy(const RandomProblem& random, Ticks time);

}  // namespace zeus::pipeline
