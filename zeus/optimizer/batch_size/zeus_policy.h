#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "zeus/optimizer/batch_size/arm_ledger.h"
#include "zeus/optimizer/batch_size/least_cost.h"
#include "zeus/optimizer/batch_size/policy.h"
#include "zeus/optimizer/batch_size/pruning_explorer.h"

namespace zeus {

// The paper's policy (Zeus §4, Algorithms 1-3): exploration with pruning, then Thompson sampling
// over the batch sizes that are left; runs are stopped at beta times the least cost of a recurrence
// that converged.
class ZeusPolicy final : public BatchSizePolicy {
 public:
  explicit ZeusPolicy(const PolicySpec& spec);
  static Result<ZeusPolicy> Restore(const PolicySpec& spec, const Json& state);

  Choice Choose(const Situation& situation) override;
  int EpochBudget(const PlannedRun& run, Joules epoch_cost) const override;
  void Observe(const RunResult& result) override;
  void LearnEpochCost(std::string_view gpu_model, int batch_size, Joules cost) override;
  std::optional<Joules> ProfiledEpochCost(std::string_view gpu_model,
                                          int batch_size) const override;
  std::vector<ArmBelief> Beliefs(std::string_view gpu_model) const override;
  int Best(std::string_view gpu_model) const override;
  std::string_view stage() const override;
  Json Save() const override;

 private:
  Joules CostToLearnFrom(const RunResult& result) const;

  PolicySpec spec_;
  ArmLedger ledger_;
  PruningExplorer explorer_;
  LeastCost least_cost_;
  std::int64_t draws_ = 0;  // Each has a stream of its own: the count is all there is to save.
};

}  // namespace zeus
