#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/arm_ledger.h"
#include "zeus/optimizer/batch_size/by_batch_size.h"
#include "zeus/optimizer/batch_size/policy.h"
#include "zeus/optimizer/batch_size/pruning_explorer.h"

namespace zeus {

// The cheapest recurrence that reached the target: what early stopping compares with, and the best
// batch size known. A run that did not converge never counts, however cheap it was. With a window,
// only the latest results of the job count: after a drift that makes everything dearer, the old
// cost would stop every run for ever. One owner.
class LeastCost {
 public:
  struct Recurrence {
    int batch_size = 0;
    Joules cost{};
  };

  explicit LeastCost(int window) : window_(window) {}

  // The cost of a recurrence that converged with `batch_size`, in units of the epoch cost.
  void Add(int batch_size, double cost);
  // A result without convergence; it only takes its place in the window.
  void AddFailure();

  // As it would be on a GPU model where epochs with the job's batch sizes cost so much; nullopt
  // when nothing converged, or no epoch cost is known.
  std::optional<Recurrence> At(std::span<const int> batch_sizes,
                               std::span<const Joules> epoch_costs) const;

  Json Save() const;
  static Result<LeastCost> Restore(int window, std::span<const int> batch_sizes, const Json& state);

 private:
  struct Entry {
    int batch_size = 0;  // 0: a failure.
    double cost = 0.0;
  };

  void Forget();

  int window_;
  ByBatchSize<double> least_{};  // Without a window.
  std::vector<Entry> latest_{};  // With one.
};

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
