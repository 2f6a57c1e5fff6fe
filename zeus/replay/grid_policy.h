#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/default_policy.h"
#include "zeus/optimizer/batch_size/policy.h"
#include "zeus/replay/limit_search.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay {

// What Zeus is compared with (Zeus §6.1): each batch size at each power limit once, one pair per
// recurrence, batch sizes ascending, limits descending, without early stopping. A batch size that
// fails is given up. Afterwards the pair that was cheapest, always. It decides the power limit,
// too: the latest Choose() decides that of the run. One owner.
class GridPolicy final : public BatchSizePolicy {
 public:
  GridPolicy(const ReplayJob& job, const PolicySpec& spec);

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

  // Of the latest choice; an index into ReplayArm::limits.
  std::size_t limit() const { return limit_; }

 private:
  struct Pair {
    int batch_size = 0;
    std::size_t limit = 0;
  };

  DefaultPolicy books_;
  std::vector<Pair> pairs_{};  // In the order in which they are tried.
  std::size_t next_ = 0;       // The first that was not.
  Pair best_;                  // The default at the greatest limit until something converged.
  std::optional<Joules> least_cost_{};
  std::size_t limit_ = 0;
};

// The limits that `grid` decides; it must outlive the search.
std::unique_ptr<LimitSearch> LimitsOf(const GridPolicy& grid);

}  // namespace zeus::replay
