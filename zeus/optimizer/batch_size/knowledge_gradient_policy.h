#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/optimizer/batch_size/epoch_cost_table.h"
#include "zeus/optimizer/batch_size/epoch_history.h"
#include "zeus/optimizer/batch_size/knowledge.h"
#include "zeus/optimizer/batch_size/policy.h"

namespace zeus {

// Explores a batch size when the recurrences to come may gain more from it than the run costs. It
// uses what the paper's policy does not: the cost of an epoch is exact once it was measured, so
// that only the number of epochs is random; that number is smooth in log2 of the batch size; and
// the longer a job has been running, the longer it will run on. Draws no random numbers.
class KnowledgeGradientPolicy final : public BatchSizePolicy {
 public:
  explicit KnowledgeGradientPolicy(const PolicySpec& spec);
  static Result<KnowledgeGradientPolicy> Restore(const PolicySpec& spec, const Json& state);

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
  // Worked out once after each change. Valid until the next one, or until asked about another
  // model.
  const Knowledge& KnowledgeOn(std::string_view gpu_model) const;
  std::size_t IndexOf(int batch_size) const;
  double Horizon(std::int64_t recurrence) const;
  int FirstToConverge() const;
  int BudgetOfNewArm(const Knowledge& knowledge, const PlannedRun& run, Joules epoch_cost) const;

  PolicySpec spec_;
  KnowledgeSource source_;
  EpochCostTable table_{};
  EpochHistory history_;
  mutable std::optional<Knowledge> latest_knowledge_{};
  mutable std::string latest_model_{};
  // About that model, after so many changes of the table.
  mutable std::vector<std::optional<EpochCostBelief>> latest_costs_{};
  mutable std::int64_t latest_changes_ = -1;
};

}  // namespace zeus
