#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "zeus/optimizer/batch_size/epoch_belief.h"
#include "zeus/optimizer/batch_size/epoch_history.h"

namespace zeus {

// The belief about one batch size. Logarithms are natural; costs are in joules.
struct ArmKnowledge {
  int batch_size = 0;
  double log_epochs = 0.0;  // Expected value of f(b), see EpochBelief.
  double log_epochs_variance = 0.0;
  double log_epoch_cost = 0.0;
  double log_epoch_cost_sigma = 0.0;
  bool profiled = false;     // Its epoch cost was measured on this GPU model.
  bool converged = false;    // It reached the target at least once.
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

}  // namespace zeus
