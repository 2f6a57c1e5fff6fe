#include "zeus/replay/contender.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/default_policy.h"
#include "zeus/optimizer/batch_size/knowledge_gradient_policy.h"
#include "zeus/optimizer/batch_size/policy.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay {
namespace {

class GreatestLimit final : public LimitStrategy {
 public:
  LimitChoice Next(std::size_t, const ReplayArm& arm) const override {
    return {.limit = arm.limits.size() - 1};
  }
  void Begun(std::size_t) override {}
  void StartOver(std::size_t) override {}
};

class BestLimit final : public LimitStrategy {
 public:
  LimitChoice Next(std::size_t, const ReplayArm& arm) const override {
    return {.limit = arm.best_limit_index};
  }
  void Begun(std::size_t) override {}
  void StartOver(std::size_t) override {}
};

class JustInTimeStrategy final : public LimitStrategy {
 public:
  explicit JustInTimeStrategy(std::size_t arms) : profiled_(arms) {}

  LimitChoice Next(std::size_t arm_index, const ReplayArm& arm) const override {
    return {.limit = arm.best_limit_index, .profiles = profiled_[arm_index] == 0};
  }
  void Begun(std::size_t arm_index) override { profiled_[arm_index] = 1; }
  void StartOver(std::size_t arms) override { profiled_.assign(arms, 0); }

 private:
  std::vector<char> profiled_;  // One flag per batch size.
};

class OneLimitPerRunStrategy final : public LimitStrategy {
 public:
  explicit OneLimitPerRunStrategy(std::size_t arms) : begun_(arms) {}

  LimitChoice Next(std::size_t arm_index, const ReplayArm& arm) const override {
    const std::size_t begun = begun_[arm_index];
    return {.limit =
                begun < arm.limits.size() ? arm.limits.size() - 1 - begun : arm.best_limit_index};
  }
  void Begun(std::size_t arm_index) override { ++begun_[arm_index]; }
  void StartOver(std::size_t arms) override { begun_.assign(arms, 0); }

 private:
  std::vector<std::size_t> begun_;  // Number of runs per batch size.
};

}  // namespace

std::unique_ptr<LimitStrategy> AtGreatestLimit() { return std::make_unique<GreatestLimit>(); }

std::unique_ptr<LimitStrategy> AtBestLimit() { return std::make_unique<BestLimit>(); }

std::unique_ptr<LimitStrategy> JustInTime(std::size_t arms) {
  return std::make_unique<JustInTimeStrategy>(arms);
}

std::unique_ptr<LimitStrategy> OneLimitPerRun(std::size_t arms) {
  return std::make_unique<OneLimitPerRunStrategy>(arms);
}

// The baseline of the paper (Zeus §6.1): it tries each batch size at each power limit once, one
// pair per recurrence, batch sizes ascending, limits descending, without early stopping. A batch
// size that fails is given up. Afterwards it always uses the pair that was cheapest. Unlike other
// policies it decides the power limit, too: the run gets the limit of the latest Choose(). Not
// thread-safe.
class GridPolicy final : public BatchSizePolicy {
 public:
  GridPolicy(const ReplayJob& job, const PolicySpec& spec);

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

  // The limit of the latest choice, as an index into ReplayArm::limits.
  std::size_t limit() const { return limit_; }

 private:
  struct Pair {
    int batch_size = 0;
    std::size_t limit = 0;
  };

  DefaultPolicy books_;
  std::vector<Pair> pairs_{};  // In the order in which they are tried.
  std::size_t next_ = 0;       // Index of the first pair that was not tried yet.
  Pair best_;  // The default batch size at the greatest limit until a run has converged.
  std::optional<Joules> least_cost_{};
  std::size_t limit_ = 0;
};

// Returns a search that takes the limits from `grid`, which must outlive it.
std::unique_ptr<LimitStrategy> MakeGridLimits(const GridPolicy& grid);

namespace {

class GridLimits final : public LimitStrategy {
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

Explanation GridPolicy::Explain(const Situation& situation) const {
  const bool over = next_ == pairs_.size();
  const bool explores = !over && !situation.exploring;
  const int batch_size = (explores ? pairs_[next_] : best_).batch_size;
  return {.choice = {.batch_size = batch_size,
                     .role = explores              ? RunRole::kExploring
                             : situation.exploring ? RunRole::kConcurrent
                                                   : RunRole::kExploiting},
          .why = fmt::format("Batch size {} {}.", batch_size,
                             explores ? "is the next of the grid" : "was the cheapest so far"),
          .settled = over,
          .outlook = over ? "Done learning: every pair of the grid was tried."
                          : "Still learning: the grid is not done."};
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

std::unique_ptr<LimitStrategy> MakeGridLimits(const GridPolicy& grid) {
  return std::make_unique<GridLimits>(grid);
}

namespace {

using LimitSearchPointer = std::unique_ptr<LimitStrategy>;

// How a contender is made: a policy of the server, a change to its spec, and a search for limits.
struct Kind {
  std::string_view name;
  std::string_view policy;
  void (*change)(const ReplayJob& job, PolicySpec& spec);
  LimitSearchPointer (*limits)(std::size_t arms);
};

void Unchanged(const ReplayJob&, PolicySpec&) {}
LimitSearchPointer Greatest(std::size_t) { return AtGreatestLimit(); }
LimitSearchPointer Best(std::size_t) { return AtBestLimit(); }

constexpr std::string_view kGrid = "grid";
constexpr std::string_view kPrior = "knowledge_gradient_prior";

constexpr std::array kKinds = {
    Kind{"default", "default", Unchanged, Greatest},
    Kind{kGrid, "default", Unchanged, nullptr},  // MakeContender() gives it a GridPolicy instead.
    Kind{"zeus", "zeus", Unchanged, JustInTime},
    Kind{"knowledge_gradient", "knowledge_gradient", Unchanged, JustInTime},
    Kind{kPrior, "knowledge_gradient", Unchanged, JustInTime},
    Kind{"oracle", "default",
         [](const ReplayJob& job, PolicySpec& spec) {
           spec.default_batch_size = job.oracle().batch_size;
         },
         Best},
    Kind{"zeus_no_early_stop", "zeus",
         [](const ReplayJob&, PolicySpec& spec) { spec.beta.reset(); }, JustInTime},
    Kind{"zeus_no_pruning", "zeus",
         [](const ReplayJob&, PolicySpec& spec) { spec.pruning_rounds = 0; }, JustInTime},
    Kind{"zeus_no_jit", "zeus", Unchanged, OneLimitPerRun},
};

Result<const Kind*> FindKind(std::string_view name) {
  const auto* const found = std::ranges::find(kKinds, name, &Kind::name);
  if (found == kKinds.end())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("policy is {}: it must be one of {}", Quote(name),
                             fmt::join(ContenderNames(), ", "))};
  return found;
}

}  // namespace

std::vector<std::string> ContenderNames() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

JobKind KindOf(const ReplayJob& job) {
  JobKind kind{
      .default_batch_size = job.default_batch_size, .max_epochs = job.max_epochs, .eta = job.eta};
  for (const ReplayArm& arm : job.arms) kind.batch_sizes.push_back(arm.batch_size);
  if (const auto workload = FindWorkload(job.label); workload.ok())
    kind.target_metric = workload.value()->target;
  return kind;
}

bool LearnsFromOtherJobs(std::string_view name) { return name == kPrior; }

Status CheckContender(std::string_view name) {
  ZEUS_RETURN_IF_ERROR(FindKind(name));
  return Ok();
}

Result<Contender> MakeContender(const ReplayJob& job, const ContenderSpec& spec,
                                std::uint64_t seed) {
  ZEUS_TRY(const Kind* const kind, FindKind(spec.name));
  PolicySpec policy_spec = job.Spec(kind->policy, seed);
  policy_spec.beta = spec.beta;
  policy_spec.window = spec.window;
  kind->change(job, policy_spec);
  ZEUS_TRY(std::unique_ptr<BatchSizePolicy> policy, MakePolicy(policy_spec));
  if (kind->policy == "knowledge_gradient") {
    KnowledgeGradientPolicy::Terms terms{.safe = spec.safe};
    if (kind->name == kPrior && spec.prior) terms.prior = spec.prior->For(KindOf(job));
    policy = std::make_unique<KnowledgeGradientPolicy>(policy_spec, terms);
  }
  if (kind->name != kGrid)
    return Contender{.policy = std::move(policy), .limits = kind->limits(job.arms.size())};
  auto grid = std::make_unique<GridPolicy>(job, policy_spec);
  LimitSearchPointer limits = MakeGridLimits(*grid);
  return Contender{.policy = std::move(grid), .limits = std::move(limits)};
}

}  // namespace zeus::replay
