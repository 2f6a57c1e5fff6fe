// A job begins with pruning (PruningExplorer): batch sizes are run from the default downwards and
// upwards, and those that do not converge are dropped, in `pruning_rounds` rounds, so that each of
// the others has as many samples. Then Thompson sampling chooses among them. In both stages a run
// is stopped at beta times the least cost of a recurrence so far; a stopped run is a sample with
// the cost at which it was stopped.
#include "zeus/optimizer/batch_size/zeus_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/random.h"
#include "zeus/optimizer/batch_size/policy_state.h"

namespace zeus {

void LeastCost::Add(int batch_size, double cost) {
  if (window_ == 0) {
    double& least = least_.emplace(batch_size, cost);
    least = std::min(least, cost);
    return;
  }
  latest_.push_back({.batch_size = batch_size, .cost = cost});
  Forget();
}

void LeastCost::AddFailure() {
  if (window_ == 0) return;
  latest_.emplace_back();
  Forget();
}

void LeastCost::Forget() {
  if (std::ssize(latest_) > window_) latest_.erase(latest_.begin());
}

std::optional<LeastCost::Recurrence> LeastCost::At(std::span<const int> batch_sizes,
                                                   std::span<const Joules> epoch_costs) const {
  std::optional<Recurrence> least;
  if (epoch_costs.empty()) return least;
  const auto consider = [&](int batch_size, double cost) {
    const auto index = std::ranges::lower_bound(batch_sizes, batch_size) - batch_sizes.begin();
    const Joules translated = cost * epoch_costs[static_cast<std::size_t>(index)];
    if (!least || translated < least->cost)
      least = Recurrence{.batch_size = batch_size, .cost = translated};
  };
  for (const auto& [batch_size, cost] : least_) consider(batch_size, cost);
  for (const Entry& entry : latest_)
    if (entry.batch_size != 0) consider(entry.batch_size, entry.cost);
  return least;
}

Json LeastCost::Save() const {
  Json state = Json::array();
  const auto add = [&state](int batch_size, double cost) {
    state.push_back(batch_size);
    state.push_back(cost);
  };
  for (const auto& [batch_size, cost] : least_) add(batch_size, cost);
  for (const Entry& entry : latest_) add(entry.batch_size, entry.cost);
  return state;
}

Result<LeastCost> LeastCost::Restore(int window, std::span<const int> batch_sizes,
                                     const Json& state) {
  LeastCost least(window);
  ZEUS_RETURN_IF_ERROR(CheckArray(state, "least_costs"));
  for (std::size_t i = 0; i < state.size(); i += 2) {
    ZEUS_TRY(const int batch_size, ElementAt<int>(state, i, "least_costs"));
    ZEUS_TRY(const double cost, NumberAt(state, i + 1, "least_costs"));
    const bool failure = batch_size == 0;
    if (cost < 0 || (!failure && !std::ranges::binary_search(batch_sizes, batch_size)))
      return DamagedState("least_costs");
    if (failure)
      least.AddFailure();
    else
      least.Add(batch_size, cost);
  }
  return least;
}

namespace {

// A recurrence has to end some time: from its twentieth try on, no run is stopped early.
constexpr int kMostBoundedTries = 19;
// A run that was not worth starting, because one epoch alone exceeds the bound, is recorded with
// this many times the bound as its cost.
constexpr double kNotStartedPenalty = 100.0;
// A run whose cost equals the bound goes on. The slack absorbs the rounding errors of the bound.
constexpr double kRoundingSlack = 1e-9;

// Returns the random stream of one draw. The odd constant spreads consecutive draw numbers over all
// bits of the seed, which Random then mixes.
Random MakeStream(std::uint64_t seed, std::int64_t draw) {
  constexpr std::uint64_t kSpread = 0xd1342543de82ef95ULL;
  return Random(seed ^ (static_cast<std::uint64_t>(draw + 1) * kSpread));
}

}  // namespace

ZeusPolicy::ZeusPolicy(const PolicySpec& spec)
    : spec_(spec),
      ledger_(spec),
      explorer_(spec.batch_sizes, spec.default_batch_size, spec.pruning_rounds),
      least_cost_(spec.window) {}

Choice ZeusPolicy::Choose(const Situation& situation) {
  if (const std::optional<int> next = explorer_.Next()) {
    if (!situation.exploring) return {.batch_size = *next, .role = RunRole::kExploring};
    return {.batch_size = Best(situation.gpu_model), .role = RunRole::kConcurrent};
  }
  const int drawn = Draw(situation.gpu_model);
  ++draws_;
  return {.batch_size = drawn, .role = RunRole::kExploiting};
}

int ZeusPolicy::Draw(std::string_view gpu_model) const {
  Random random = MakeStream(spec_.seed, draws_);
  return ledger_.arms().Predict(explorer_.candidates(), ledger_.EpochCosts(gpu_model), random);
}

// --- words ---

std::optional<CostBelief> ZeusPolicy::Belief(std::string_view gpu_model, int batch_size) const {
  return ledger_.arms().Belief(batch_size, ledger_.EpochCost(gpu_model, batch_size));
}

// "64 (2.10 ± 0.10 MJ to the target)".
std::string ZeusPolicy::CostText(std::string_view gpu_model, int batch_size) const {
  const auto belief = Belief(gpu_model, batch_size);
  if (!belief) return fmt::to_string(batch_size);
  return fmt::format("{} ({} to the target)", batch_size, WithSigma(belief->mean, belief->sigma));
}

void ZeusPolicy::ExplainPruning(const Situation& situation, Explanation& told) const {
  const int next = *explorer_.Next();
  if (situation.exploring) {
    told.choice = {.batch_size = Best(situation.gpu_model), .role = RunRole::kConcurrent};
    told.why = fmt::format(
        "While another run explores, this one takes the cheapest batch size so far, {}.",
        CostText(situation.gpu_model, told.choice.batch_size));
  } else {
    told.choice = {.batch_size = next, .role = RunRole::kExploring};
    told.why = fmt::format(
        "The run explores: batch sizes are tried from the default downwards and upwards until one "
        "fails, and {} is next.",
        next);
  }
  told.outlook = fmt::format(
      "Still learning: batch size {} {} explored, and batch sizes that fail are dropped.", next,
      situation.exploring ? "is being" : "is to be");
}

namespace {

// An upper bound of the probability that a draw prefers another arm to `best`: the sum of the
// probabilities that each of the others is drawn below it.
double OtherDrawn(const CostBelief& best, std::span<const CostBelief> others) {
  double sum = 0;
  for (const CostBelief& other : others) {
    const double sigma = std::hypot(best.sigma.value(), other.sigma.value());
    const double gap = other.mean.value() - best.mean.value();
    if (sigma > 0)
      sum += 0.5 * std::erfc(gap / sigma / std::numbers::sqrt2);
    else if (gap <= 0)
      sum += 1;
  }
  return std::min(sum, 1.0);
}

// Below this the policy counts as settled.
constexpr double kSettled = 0.05;

}  // namespace

void ZeusPolicy::ExplainSampling(const Situation& situation, Explanation& told) const {
  const std::string& model = situation.gpu_model;
  const std::vector<int>& arms = explorer_.candidates();
  told.choice = {.batch_size = Draw(model), .role = RunRole::kExploiting};
  const int drawn = told.choice.batch_size;
  if (const auto unknown = ledger_.arms().FirstUnknown(arms); unknown && arms.size() > 1) {
    told.why = fmt::format(
        "Batch size {} was not run often enough to say what it costs, so it runs.", drawn);
    told.outlook = fmt::format("Still learning: batch size {} needs more runs.", *unknown);
    return;
  }
  const int best = Best(model);
  const std::string cheapest = CostText(model, best);
  if (arms.size() == 1)
    told.why = fmt::format("Batch size {} is the only one that is left.", cheapest);
  else if (drawn == best)
    told.why = fmt::format(
        "Batch size {} costs least as far as is known, and costs drawn at random from the beliefs "
        "favour it, too.",
        cheapest);
  else
    told.why = fmt::format(
        "Costs drawn at random from the beliefs favour batch size {}, although {} is expected to "
        "cost less: that is how this policy explores.",
        CostText(model, drawn), cheapest);
  if (arms.size() == 1) {
    told.settled = true;
    told.outlook = fmt::format("Done learning: only batch size {} is left.", best);
    return;
  }
  std::vector<CostBelief> others;
  for (const int arm : arms)
    if (arm != best) others.push_back(Belief(model, arm).value_or(CostBelief{}));
  const double share = OtherDrawn(Belief(model, best).value_or(CostBelief{}), others);
  told.settled = share <= kSettled;
  told.outlook = fmt::format("{}: others than batch size {} run in at most {} of recurrences.",
                             told.settled ? "Done learning for now" : "Still learning", best,
                             PercentText(share));
}

Explanation ZeusPolicy::Explain(const Situation& situation) const {
  Explanation told;
  if (explorer_.Next())
    ExplainPruning(situation, told);
  else
    ExplainSampling(situation, told);
  return told;
}

int ZeusPolicy::EpochBudget(const PlannedRun& run, Joules epoch_cost) const {
  const auto least = least_cost_.At(spec_.batch_sizes, ledger_.EpochCosts(run.gpu_model));
  if (!spec_.beta || !least || run.attempt >= kMostBoundedTries) return spec_.max_epochs;
  const double epochs = *spec_.beta * (least->cost / epoch_cost) * (1 + kRoundingSlack);
  // The negation also catches NaN and infinity, when an epoch costs 0 J.
  if (!(epochs < spec_.max_epochs)) return spec_.max_epochs;
  return static_cast<int>(epochs);
}

Joules ZeusPolicy::CostToLearnFrom(const RunResult& result) const {
  if (result.epochs > 0) return result.cost;
  const auto least = least_cost_.At(spec_.batch_sizes, ledger_.EpochCosts(result.run.gpu_model));
  return least ? kNotStartedPenalty * spec_.beta.value_or(1.0) * least->cost : result.cost;
}

void ZeusPolicy::Observe(const RunResult& result) {
  const PlannedRun& run = result.run;
  ledger_.LearnEpochCost(result);
  const Joules cost = CostToLearnFrom(result);
  ledger_.Observe(result, cost);
  const Joules unit = ledger_.EpochCost(run.gpu_model, run.batch_size);
  if (result.converged)
    least_cost_.Add(run.batch_size, result.recurrence_cost / unit);
  else
    least_cost_.AddFailure();
  // The explorer learns only from the run that it waits for.
  if (run.role != RunRole::kExploring || explorer_.Next() != run.batch_size) return;
  // It compares costs on one GPU model, the first of the job.
  const std::string_view home = ledger_.epoch_costs().home();
  const bool elsewhere = run.gpu_model != home;
  explorer_.Observe(result.converged,
                    elsewhere ? (cost / unit) * ledger_.EpochCost(home, run.batch_size) : cost);
}

void ZeusPolicy::LearnEpochCost(std::string_view gpu_model, int batch_size, Joules cost) {
  ledger_.LearnEpochCost(gpu_model, batch_size, cost);
}

std::optional<Joules> ZeusPolicy::ProfiledEpochCost(std::string_view gpu_model,
                                                    int batch_size) const {
  return ledger_.epoch_costs().Profiled(gpu_model, batch_size);
}

std::vector<ArmBelief> ZeusPolicy::Beliefs(std::string_view gpu_model) const {
  std::vector<ArmBelief> beliefs;
  for (const int batch_size : spec_.batch_sizes) {
    beliefs.push_back(ledger_.Describe(gpu_model, batch_size));
    if (explorer_.Dropped(batch_size)) beliefs.back().state = ArmState::kDropped;
  }
  return beliefs;
}

int ZeusPolicy::Best(std::string_view gpu_model) const {
  if (!explorer_.Next())
    return ledger_.arms().Best(explorer_.candidates(), ledger_.EpochCosts(gpu_model));
  const auto least = least_cost_.At(spec_.batch_sizes, ledger_.EpochCosts(gpu_model));
  return least ? least->batch_size : spec_.default_batch_size;
}

std::string_view ZeusPolicy::stage() const { return explorer_.Next() ? "pruning" : "sampling"; }

Json ZeusPolicy::Save() const {
  Json state = NewPolicyState("zeus");
  state["draws"] = draws_;
  state["pruning"] = explorer_.Save();
  state["least_costs"] = least_cost_.Save();
  ledger_.SaveTo(state);
  return state;
}

Result<ZeusPolicy> ZeusPolicy::Restore(const PolicySpec& spec, const Json& state) {
  ZeusPolicy policy(spec);
  ZEUS_TRY(policy.draws_, GetField<std::int64_t>(state, "draws"));
  ZEUS_TRY(const Json* const pruning, FindPart(state, "pruning"));
  ZEUS_TRY(policy.explorer_, PruningExplorer::Restore(std::move(policy.explorer_), *pruning));
  ZEUS_TRY(const Json* const least, FindPart(state, "least_costs"));
  ZEUS_TRY(policy.least_cost_, LeastCost::Restore(spec.window, spec.batch_sizes, *least));
  ZEUS_RETURN_IF_ERROR(policy.ledger_.RestoreFrom(state));
  return policy;
}

}  // namespace zeus
