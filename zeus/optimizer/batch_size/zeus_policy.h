#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/arm_ledger.h"
#include "zeus/optimizer/batch_size/policy.h"
#include "zeus/optimizer/batch_size/policy_state.h"
#include "zeus/optimizer/batch_size/pruning_explorer.h"

namespace zeus {

// The cheapest recurrence that reached the target. Early stopping compares with its cost, and its
// batch size is the best one known. A run that did not converge never counts, however cheap it was.
// With a window, only the latest results of the job count: after a drift that makes everything more
// expensive, the old cost would stop every run for ever. One owner.
class LeastCost {
 public:
  struct Recurrence {
    int batch_size = 0;
    Joules cost{};
  };

  explicit LeastCost(int window) : window_(window) {}

  // Adds a recurrence that converged with `batch_size`; its cost is in units of the epoch cost.
  void Add(int batch_size, double cost);
  // Adds a run that did not converge: it only occupies a place in the window.
  void AddFailure();

  // Returns the cheapest recurrence on a GPU model with these epoch costs, one per batch size of
  // the job; nullopt when nothing converged or no epoch cost is known.
  std::optional<Recurrence> At(std::span<const int> batch_sizes,
                               std::span<const Joules> epoch_costs) const;

  Json Save() const;
  static Result<LeastCost> Restore(int window, std::span<const int> batch_sizes, const Json& state);

 private:
  struct Entry {
    int batch_size = 0;  // 0: the run did not converge.
    double cost = 0.0;
  };

  void Forget();

  int window_;
  ByBatchSize<double> least_{};  // Least costs when there is no window.
  std::vector<Entry> latest_{};  // Latest results when there is a window.
};

// The paper's policy (Zeus §4, Algorithms 1-3). It first explores with pruning, which drops batch
// sizes that do not converge, then chooses among the rest by Thompson sampling. A run is stopped at
// beta times the least cost of a recurrence that converged: it cannot become the best any more.
// Costs from other GPU models are converted by the ratio of the epoch costs (Zeus §7).
class ZeusPolicy final : public BatchSizePolicy {
 public:
  explicit ZeusPolicy(const PolicySpec& spec);
  static Result<ZeusPolicy> Restore(const PolicySpec& spec, const Json& state);

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
  Joules CostToLearnFrom(const RunResult& result) const;
  // Returns the batch size of random choice number draws_.
  int Draw(std::string_view gpu_model) const;
  std::optional<CostBelief> Belief(std::string_view gpu_model, int batch_size) const;
  std::string CostText(std::string_view gpu_model, int batch_size) const;
  void ExplainPruning(const Situation& situation, Explanation& told) const;
  void ExplainSampling(const Situation& situation, Explanation& told) const;

  PolicySpec spec_;
  ArmLedger ledger_;
  PruningExplorer explorer_;
  LeastCost least_cost_;
  // Number of random choices so far. Each has a random stream of its own, so this count is all the
  // random state that has to be saved.
  std::int64_t draws_ = 0;
};

}  // namespace zeus
