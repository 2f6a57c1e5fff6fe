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

// The books of a policy that thinks in costs: what an epoch costs on each GPU model, and what runs
// cost in units of that. One owner.
class ArmLedger {
 public:
  explicit ArmLedger(const PolicySpec& spec);

  const EpochCostTable& epoch_costs() const { return epoch_costs_; }
  const GaussianThompson& arms() const { return arms_; }

  void LearnEpochCost(std::string_view gpu_model, int batch_size, Joules cost);
  // The epoch cost of a run, as it was reported or as its whole cost implies.
  void LearnEpochCost(const RunResult& result);
  // A run that is worth `cost`.
  void Observe(const RunResult& result, Joules cost);

  // What an epoch costs, as well as it is known; anything when nothing was ever measured, since
  // then there is no cost to convert either.
  Joules EpochCost(std::string_view gpu_model, int batch_size) const;
  // Of all batch sizes, in their order; empty when nothing was ever measured. Valid until something
  // is learned, or asked about another model.
  std::span<const Joules> EpochCosts(std::string_view gpu_model) const;

  // Untried, or a candidate.
  ArmBelief Describe(std::string_view gpu_model, int batch_size) const;

  void SaveTo(Json& state) const;
  Status RestoreFrom(const Json& state);

 private:
  std::size_t IndexOf(int batch_size) const;

  std::vector<int> batch_sizes_;
  EpochCostTable epoch_costs_{};
  GaussianThompson arms_;
  // What EpochCosts() said last, about which model, and after how many changes of the table.
  mutable std::vector<Joules> latest_costs_{};
  mutable std::string latest_model_{};
  mutable std::int64_t latest_changes_ = 0;
};

}  // namespace zeus
