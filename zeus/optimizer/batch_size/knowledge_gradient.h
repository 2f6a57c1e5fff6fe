#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/knowledge.h"

// The knowledge gradient: what is one more run with some batch size worth?
//
// The leader is the batch size that is believed to be cheapest. If a run with another one teaches
// that it is cheaper, every later recurrence gains the difference; if not, the leader stays and
// nothing is gained. So the value of a run is `horizon`, the number of recurrences still expected,
// times the expected gain of one recurrence, less the extra cost of the run itself. As long as the
// best value is positive, exploring pays. The functions need a Knowledge with a leader.
namespace zeus {

// A random variable X whose logarithm ln X is normally distributed.
struct Lognormal {
  double mean_log = 0.0;
  double variance_log = 0.0;

  double Mean() const;
  // E[max(limit - X, 0)]: by how much X stays below the limit, on average.
  double ExpectedShortfall(double limit) const;

  // Mean and expected shortfall given that X > floor >= 0; NaN when the probability of that is 0.
  double MeanAbove(double floor) const;
  double ExpectedShortfallAbove(double floor, double limit) const;
};

// Returns the candidate whose exploration is worth most; nullopt when exploring none of them pays.
// A run with a batch size that has not converged yet is stopped at `beta` times the leader's cost.
std::optional<std::size_t> MostValuable(const Knowledge& knowledge, double horizon, double beta);

// Returns the candidate with the least optimistic cost (mean less 1.75 standard deviations);
// nullopt when even that is not below the leader's cost.
std::optional<std::size_t> MostPromising(const Knowledge& knowledge);

// A run with a batch size that has not converged yet.
struct NewArmRun {
  std::size_t arm = 0;
  Joules epoch_cost{};
  int first = 0;  // Epochs that it may take in any case.
  int limit = 0;  // Epochs that it may take at most.
};

// Returns the number of epochs after which the run should be stopped, if it has not converged.
int WorthwhileEpochs(const Knowledge& knowledge, const NewArmRun& run, double horizon);

}  // namespace zeus
