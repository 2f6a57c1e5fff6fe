#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/optimizer/batch_size/epoch_cost_table.h"
#include "zeus/optimizer/batch_size/gaussian_thompson.h"
#include "zeus/optimizer/batch_size/policy.h"

namespace zeus {

// The records of a policy that learns the cost of whole runs: what an epoch costs on each GPU
// model, and what runs cost in units of their batch size's epoch cost. One owner.
class ArmLedger {
 public:
  explicit ArmLedger(const PolicySpec& spec);

  const EpochCostTable& epoch_costs() const { return epoch_costs_; }
  const GaussianThompson& arms() const { return arms_; }

  void LearnEpochCost(std::string_view gpu_model, int batch_size, Joules cost);
  // Learns the epoch cost that the run reported, or else its cost divided by its epochs.
  void LearnEpochCost(const RunResult& result);
  // Records a run. `cost` may differ from the run's own: a run that was not worth starting counts
  // as very expensive.
  void Observe(const RunResult& result, Joules cost);

  // Returns the best estimate of what an epoch costs. While nothing was measured it is 1 J, which
  // does no harm: there is no cost to convert yet.
  Joules EpochCost(std::string_view gpu_model, int batch_size) const;
  // Returns the epoch costs of all batch sizes, in their order; empty when nothing was measured.
  // The span is valid until something is learned or another GPU model is asked for.
  std::span<const Joules> EpochCosts(std::string_view gpu_model) const;

  // Describes a batch size as untried or as a candidate; it is up to the policy to drop it.
  ArmBelief Describe(std::string_view gpu_model, int batch_size) const;

  void SaveTo(Json& state) const;
  Status RestoreFrom(const Json& state);

 private:
  std::size_t ArmIndex(int batch_size) const;

  std::vector<int> batch_sizes_;
  EpochCostTable epoch_costs_{};
  GaussianThompson arms_;
  // The cached result of EpochCosts(), with the GPU model and the table's count of changes for
  // which it holds.
  mutable std::vector<Joules> latest_costs_{};
  mutable std::string latest_model_{};
  mutable std::int64_t latest_changes_ = 0;
};

}  // namespace zeus
