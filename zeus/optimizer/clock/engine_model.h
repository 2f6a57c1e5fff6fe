#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "zeus/base/units.h"

// How an inference engine with continuous batching spends time and energy at each clock, learned
// from sums over about a second.
//
// Time is linear in the work: an iteration costs a fixed time (the weights are read once), each
// decoding sequence and each prompt token cost theirs. Each of the three has a part that does not
// depend on the clock and a part that goes with its inverse. The six constants are fitted by
// non-negative least squares with forgetting. As long as only one clock was seen the two parts
// cannot be told apart; then all counts as going with the inverse of the clock, the worse case.
//
// Energy above idle is linear in the same work at the highest clock; at others it is that times a
// ratio, which is measured at a few clocks and interpolated between them.
namespace zeus {

// What an engine did in a stretch of time.
struct EngineWork {
  Seconds busy{};          // Time with at least one request in flight.
  double iterations = 0;
  double decoded = 0;  // Output tokens.
  double prompt = 0;   // Prompt tokens.

  EngineWork& operator+=(const EngineWork& other);
};

// All that a model has learned, as plain numbers that a caller can store.
struct EngineKnowledge {
  std::array<double, 6> times{};     // Seconds; for iterations, decoded, prompt: fixed, by clock.
  std::array<double, 3> energies{};  // Joules at the highest clock, above idle.
  double idle_watts = 0;
  std::vector<double> clocks{};  // Relative to the highest clock, ascending.
  std::vector<double> ratios{};  // Energy against the highest clock.
};

}  // namespace zeus
