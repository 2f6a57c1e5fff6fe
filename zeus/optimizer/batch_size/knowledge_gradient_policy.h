#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/optimizer/batch_size/epoch_belief.h"
#include "zeus/optimizer/batch_size/epoch_cost_table.h"
#include "zeus/optimizer/batch_size/job_prior.h"
#include "zeus/optimizer/batch_size/knowledge_gradient.h"
#include "zeus/optimizer/batch_size/policy.h"
#include "zeus/optimizer/batch_size/safe_ledger.h"

namespace zeus {

// Explores a batch size when later recurrences are expected to gain more from it than the run costs
// (see knowledge_gradient.h). It uses three facts that the paper's policy does not. The cost of an
// epoch is exact once it was measured, so only the number of epochs is random. That number is
// smooth in log2 of the batch size, so batch sizes teach about their neighbours (EpochBelief). And
// a job that has recurred often will recur often again, so exploring pays more. Without any
// converged run, it tries batch sizes from the default outwards until one converges. It draws no
// random numbers.
class KnowledgeGradientPolicy final : public BatchSizePolicy {
 public:
  // The terms of a job that only this policy knows.
  struct Terms {
    // The share by which all recurrences together may cost more than with the default batch size,
    // with 95 % confidence; nullopt: no bound.
    std::optional<double> safe{};
    // The knowledge taken over from other jobs.
    JobPrior prior{};
  };

  explicit KnowledgeGradientPolicy(const PolicySpec& spec)
      : KnowledgeGradientPolicy(spec, Terms{}) {}
  KnowledgeGradientPolicy(const PolicySpec& spec, const Terms& terms);
  static Result<KnowledgeGradientPolicy> Restore(const PolicySpec& spec, const Json& state) {
    return Restore(spec, state, Terms{});
  }
  static Result<KnowledgeGradientPolicy> Restore(const PolicySpec& spec, const Json& state,
                                                 const Terms& terms);

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
  // Computed once after each change, then cached. The reference is valid until the next change or
  // until another GPU model is asked for.
  const Knowledge& KnowledgeOn(std::string_view gpu_model) const;
  std::size_t ArmIndex(int batch_size) const;
  double Horizon(std::int64_t recurrence) const;
  int NearestUndropped() const;
  // The batch size that the first try of a recurrence explores; nullopt: it runs the leader.
  std::optional<std::size_t> Explored(const Knowledge& knowledge, std::int64_t recurrence) const;
  // Whether an epoch costs so much more or less than in the jobs of its kind that this job must be
  // another one.
  bool ContradictsOthers(std::string_view gpu_model, int batch_size, Joules epoch_cost) const;
  Choice Decide(const Situation& situation) const;
  // Decides as if the job had no safety bound.
  Choice DecideFreely(const Knowledge& knowledge, const Situation& situation) const;
  SafeLedger::Default UsualRun(const Knowledge& knowledge) const;
  bool IsSafe(const Knowledge& knowledge, int batch_size) const;
  // Cost of an epoch with a batch size in units of one with the default.
  double RelativeEpochCost(const Knowledge& knowledge, std::size_t arm) const;
  int SafeBudget(const Knowledge& knowledge, const PlannedRun& run, int budget) const;
  void CountForSafety(const RunResult& result);
  std::string WhyWithoutLeader(const Choice& choice) const;
  std::string WhyLeader(const Knowledge& knowledge, const Situation& situation) const;
  std::string WhyExplored(const Knowledge& knowledge, const Situation& situation,
                          int batch_size) const;
  std::string WhySafe(const Choice& choice) const;
  int FreeBudget(const Knowledge& knowledge, const PlannedRun& run, Joules epoch_cost) const;
  int NewArmBudget(const Knowledge& knowledge, const PlannedRun& run, Joules epoch_cost) const;

  PolicySpec spec_;
  Terms terms_;
  KnowledgeSource source_;
  EpochCostTable table_{};
  EpochHistory history_;
  std::optional<SafeLedger> safe_{};
  double others_horizon_ = 0.0;  // Recurrences that other jobs of the kind have had.
  mutable std::optional<Knowledge> latest_knowledge_{};
  mutable std::string latest_model_{};
  // Epoch costs on `latest_model_`, and the table's count of changes for which they hold.
  mutable std::vector<std::optional<EpochCostBelief>> latest_costs_{};
  mutable std::int64_t latest_changes_ = -1;
};

}  // namespace zeus
