#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/knowledge.h"

// The decisions of the knowledge gradient, given what is known: exploring a batch size is worth
// what the recurrences to come may gain by it. `horizon` is how many of them are counted on. All
// need a leader.
namespace zeus {

// X with ln X normally distributed.
struct Lognormal {
  double mean_log = 0.0;
  double variance_log = 0.0;

  double Mean() const;
  // E[(limit - X)^+]: by how much X stays below the limit, on average.
  double ExpectedShortfall(double limit) const;

  // The same for an X of which it is known that X > floor >= 0. Not numbers when that is out of the
  // question.
  double MeanAbove(double floor) const;
  double ExpectedShortfallAbove(double floor, double limit) const;
};

// The candidate whose exploration is worth most; nullopt when none is worth more than the leader.
std::optional<std::size_t> MostValuable(const Knowledge& knowledge, double horizon, double beta);

// The candidate that could be cheapest if things are better than believed; nullopt when even then
// none is cheaper than the leader.
std::optional<std::size_t> MostPromising(const Knowledge& knowledge);

// A run with a batch size that has not converged yet.
struct NewArmRun {
  std::size_t arm = 0;
  Joules epoch_cost{};
  int first = 0;  // It may take so many epochs in any case,
  int limit = 0;  // and at most so many.
};

// The epochs after which a run is not worth going on.
int WorthwhileEpochs(const Knowledge& knowledge, const NewArmRun& run, double horizon);

}  // namespace zeus
