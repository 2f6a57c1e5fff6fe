#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "zeus/optimizer/batch_size/arm_ledger.h"
#include "zeus/optimizer/batch_size/policy.h"

namespace zeus {

// Always chooses the default batch size and never stops a run early: for jobs whose batch size must
// not change, and as the baseline of comparisons. It records costs as the other policies do, so
// that Beliefs() can show them.
class DefaultPolicy final : public BatchSizePolicy {
 public:
  explicit DefaultPolicy(const PolicySpec& spec);
  static Result<DefaultPolicy> Restore(const PolicySpec& spec, const Json& state);

  Choice Choose(const Situation& situation) override;
  Explanation Explain(const Situation& situation) const override;
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
  PolicySpec spec_;
  ArmLedger ledger_;
};

}  // namespace zeus
