#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "zeus/optimizer/batch_size/epoch_belief.h"
#include "zeus/optimizer/batch_size/epoch_history.h"

namespace zeus {

// What is believed about one batch size. Logarithms are natural; costs in joules.
struct ArmKnowledge {
  int batch_size = 0;
  double log_epochs = 0.0;  // f
  double log_epochs_variance = 0.0;
  double log_epoch_cost = 0.0;  // g
  double log_epoch_cost_sigma = 0.0;
  bool profiled = false;   // Its epoch cost was measured on this GPU model.
  bool converged = false;  // At least once.
  bool has_results = false;
  bool candidate = false;  // Near enough to what converged, and not dropped.

  double log_cost() const { return log_epochs + log_epoch_cost; }
  double log_cost_variance() const {
    return log_epochs_variance + log_epoch_cost_sigma * log_epoch_cost_sigma;
  }
};

// What `knowledge_gradient` knows at one moment about runs on one GPU model.
struct Knowledge {
  double noise = 0.0;  // Variance of ln epochs between runs of one batch size.
  std::vector<ArmKnowledge> arms{};
  std::optional<std::size_t> leader{};  // The best of those that converged.
  double leader_cost = 0.0;             // Expected, of one run.
};

// Puts together what runs have shown and what epochs cost. Immutable.
class KnowledgeSource {
 public:
  KnowledgeSource(std::span<const int> batch_sizes, int default_batch_size);

  // `costs` is what is believed about epoch costs, one per batch size.
  Knowledge About(const EpochHistory& history,
                  std::span<const std::optional<EpochCostBelief>> costs) const;

 private:
  std::vector<int> batch_sizes_;
  std::vector<double> octaves_{};  // log2 of them.
  EpochBelief belief_;
};

}  // namespace zeus
