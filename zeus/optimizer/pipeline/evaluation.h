#pragma once

#include <span>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// What an iteration takes when each computation runs at one of its measured points, in true times.
struct Evaluation {
  Seconds time{0};
  Joules energy{};                // Blocking included.
  std::vector<Seconds> starts{};  // Of each computation, as early as possible.
};

// choice[i]: which point of its kind computation i runs at. extra[i], if given: time that it takes
// longer, at blocking power (a change of the clock before it).
Evaluation Evaluate(const Problem& problem, std::span<const int> choice,
                    std::span<const Seconds> extra = {});

// Every computation at its fastest point: what a pipeline does that nobody planned for.
std::vector<int> FastestChoice(const Problem& problem);
// Every computation at its highest clock: what hardware does that nobody tells otherwise. The same
// as the fastest, unless the measurement is noisy or a power limit throttles.
std::vector<int> HighestClockChoice(const Problem& problem);

}  // namespace zeus::pipeline
