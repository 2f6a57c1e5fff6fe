#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/epoch_belief.h"

namespace zeus {

// The belief about one batch size. Logarithms are natural; costs are in joules.
struct ArmKnowledge {
  int batch_size = 0;
  double log_epochs = 0.0;  // Expected value of f(b), see EpochBelief.
  double log_epochs_variance = 0.0;
  double log_epoch_cost = 0.0;
  double log_epoch_cost_sigma = 0.0;
  bool profiled = false;     // Its epoch cost was measured on this GPU model.
  bool converged = false;    // It reached the target at least once, or is assumed to.
  bool assumed = false;      // It reached the target in other jobs only.
  bool has_results = false;  // It has results since the last drift.
  bool candidate = false;    // It is near enough to one that converged, and not dropped.

  double log_cost() const { return log_epochs + log_epoch_cost; }
  double log_cost_variance() const {
    return log_epochs_variance + log_epoch_cost_sigma * log_epoch_cost_sigma;
  }
};

// Everything that the policy `knowledge_gradient` knows at one moment about runs on one GPU model.
struct Knowledge {
  double noise = 0.0;  // Variance of ln epochs between runs of one batch size.
  std::vector<ArmKnowledge> arms{};
  std::optional<std::size_t> leader{};  // The cheapest batch size that converged.
  double leader_cost = 0.0;             // Expected cost of one run with it.
};

// Combines the results of runs and the epoch costs into Knowledge. Immutable.
class KnowledgeSource {
 public:
  KnowledgeSource(std::span<const int> batch_sizes, int default_batch_size);

  // `costs` has one belief per batch size.
  Knowledge About(const EpochHistory& history,
                  std::span<const std::optional<EpochCostBelief>> costs) const;

 private:
  std::vector<int> batch_sizes_;
  std::vector<double> octaves_{};  // log2 of the batch sizes.
  EpochBelief belief_;
};

// The knowledge gradient: what is one more run with some batch size worth?
//
// The leader is the batch size that is believed to be cheapest. If a run with another one teaches
// that it is cheaper, every later recurrence gains the difference; if not, the leader stays and
// nothing is gained. So the value of a run is `horizon`, the number of recurrences still expected,
// times the expected gain of one recurrence, less the extra cost of the run itself. As long as the
// best value is positive, exploring pays. The functions need a Knowledge with a leader.

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

// A candidate, and the worth in joules of a run that explores it: the expected gain of later
// recurrences less the extra cost of the run. Not above 0 when exploring it does not pay.
struct Prospect {
  std::size_t arm = 0;
  double value = 0.0;
};

// Returns the candidate whose exploration is worth most; nullopt when there is no candidate besides
// the leader. A run with a batch size that has not converged yet is stopped at `beta` times the
// leader's cost.
std::optional<Prospect> BestProspect(const Knowledge& knowledge, double horizon, double beta);

// Returns the arm of BestProspect(); nullopt when exploring it does not pay.
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
