#include "zeus/replay/grid_policy.h"

#include <algorithm>

#include "zeus/base/json.h"

namespace zeus::replay {
namespace {

class GridLimits final : public LimitSearch {
 public:
  explicit GridLimits(const GridPolicy& grid) : grid_(grid) {}

  LimitChoice Next(std::size_t, const ReplayArm&) const override {
    return {.limit = grid_.limit()};
  }
  void Begun(std::size_t) override {}
  void StartOver(std::size_t) override {}

 private:
  const GridPolicy& grid_;
};

}  // namespace

GridPolicy::GridPolicy(const ReplayJob& job, const PolicySpec& spec) : books_(spec) {
  for (const ReplayArm& arm : job.arms) {
    for (std::size_t limit = arm.limits.size(); limit-- > 0;)
      pairs_.push_back({.batch_size = arm.batch_size, .limit = limit});
    if (arm.batch_size == spec.default_batch_size)
      best_ = {.batch_size = arm.batch_size, .limit = arm.limits.size() - 1};
  }
}

Choice GridPolicy::Choose(const Situation& situation) {
  const bool explores = next_ < pairs_.size() && !situation.exploring;
  const Pair& chosen = explores ? pairs_[next_] : best_;
  limit_ = chosen.limit;
  if (explores) return {.batch_size = chosen.batch_size, .role = RunRole::kExploring};
  return {.batch_size = chosen.batch_size,
          .role = situation.exploring ? RunRole::kConcurrent : RunRole::kExploiting};
}

int GridPolicy::EpochBudget(const PlannedRun& run, Joules epoch_cost) const {
  return books_.EpochBudget(run, epoch_cost);
}

void GridPolicy::Observe(const RunResult& result) {
  books_.Observe(result);
  const bool expected = next_ < pairs_.size() && result.run.role == RunRole::kExploring &&
                        pairs_[next_].batch_size == result.run.batch_size;
  if (!expected) return;
  if (!result.converged) {
    const auto rest = pairs_.begin() + static_cast<std::ptrdiff_t>(next_);
    next_ = static_cast<std::size_t>(std::ranges::find_if(rest, pairs_.end(),
                                                          [&](const Pair& pair) {
                                                            return pair.batch_size !=
                                                                   result.run.batch_size;
                                                          }) -
                                     pairs_.begin());
    return;
  }
  if (!least_cost_ || result.cost < *least_cost_) {
    least_cost_ = result.cost;
    best_ = pairs_[next_];
  }
  ++next_;
}

void GridPolicy::LearnEpochCost(std::string_view gpu_model, int batch_size, Joules cost) {
  books_.LearnEpochCost(gpu_model, batch_size, cost);
}

std::optional<Joules> GridPolicy::ProfiledEpochCost(std::string_view gpu_model,
                                                    int batch_size) const {
  return books_.ProfiledEpochCost(gpu_model, batch_size);
}

std::vector<ArmBelief> GridPolicy::Beliefs(std::string_view gpu_model) const {
  std::vector<ArmBelief> beliefs = books_.Beliefs(gpu_model);
  for (ArmBelief& belief : beliefs) {
    const auto waiting = pairs_.begin() + static_cast<std::ptrdiff_t>(next_);
    const bool is_left = belief.batch_size == best_.batch_size ||
                         std::ranges::find(waiting, pairs_.end(), belief.batch_size,
                                           &Pair::batch_size) != pairs_.end();
    belief.state = !is_left           ? ArmState::kDropped
                   : belief.runs == 0 ? ArmState::kUntried
                                      : ArmState::kCandidate;
  }
  return beliefs;
}

int GridPolicy::Best(std::string_view) const { return best_.batch_size; }

std::string_view GridPolicy::stage() const { return next_ < pairs_.size() ? "exploring" : "fixed"; }

Json GridPolicy::Save() const {
  Json state = books_.Save();
  state["policy"] = "grid";
  state["next"] = next_;
  state["best"] = {best_.batch_size, best_.limit};
  return state;
}

std::unique_ptr<LimitSearch> LimitsOf(const GridPolicy& grid) {
  return std::make_unique<GridLimits>(grid);
}

}  // namespace zeus::replay
