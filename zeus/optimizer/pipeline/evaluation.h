#pragma once

#include <span>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// Time and energy of an iteration in which each computation runs at one of its measured points. The
// times are the measured ones, not rounded to ticks.
struct Evaluation {
  Seconds time{0};
  Joules energy{};                // Includes blocking power while stages wait.
  std::vector<Seconds> starts{};  // Start of each computation, as early as possible.
};

// Computation i runs at the point choice[i] of its kind. extra[i], if given, is a delay before it
// at blocking power, as from a change of the clock.
Evaluation Evaluate(const Problem& problem, std::span<const int> choice,
                    std::span<const Seconds> extra = {});

// Every computation at its fastest point.
std::vector<int> FastestChoice(const Problem& problem);
// Every computation at its highest clock, as hardware runs without a plan. This is the same as the
// fastest choice unless measurements are noisy or a power limit throttles.
std::vector<int> HighestClockChoice(const Problem& problem);

}  // namespace zeus::pipeline
