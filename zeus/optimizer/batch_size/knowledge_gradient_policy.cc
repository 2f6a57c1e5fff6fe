// The order of decisions. While nothing has converged, batch sizes are tried from the default
// outwards. From then on there is a leader, the cheapest batch size that converged. The first try
// of a recurrence explores if the knowledge gradient finds a batch size worth it, or on a checkup;
// later tries run the leader, so that a recurrence ends. A run with a converged batch size is
// stopped at beta times the epochs that it is expected to need. A run with a new one is stopped
// when going on costs more than it may still gain, and at beta times the leader's cost at the
// latest. A new batch size that failed twice, or cost as much as a run of the leader in vain, is
// dropped.
#include "zeus/optimizer/batch_size/knowledge_gradient_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/optimizer/batch_size/knowledge_gradient.h"
#include "zeus/optimizer/batch_size/policy_state.h"

namespace zeus {
namespace {

constexpr double kShortestHorizon = 5.0;  // Recurrences.
// A job does not explore for more recurrences of other jobs than these.
constexpr double kLongestHorizonOfOthers = 100.0;
// A recurrence has to end some time: from its fourth try on, no run is stopped early.
constexpr int kBoundedTries = 3;
// A batch size that never converged is dropped after so many stopped runs.
constexpr int kMostStops = 2;
// 99 % of a normal distribution lies within so many standard deviations.
constexpr double kSurprise = 2.5758293035489004;
// Values runs of new batch sizes when the job never stops early and so has no beta.
constexpr double kDefaultBeta = 2.0;

// Recurrences 10, 20, 40, … are checkups: the belief itself may be wrong, so the most promising
// batch size is tried even if that does not seem to pay.
bool IsCheckup(std::int64_t recurrence) {
  std::int64_t checkup = 10;
  while (checkup < recurrence) checkup *= 2;
  return checkup == recurrence;
}

// A run is surprising if it needed a number of epochs outside the interval in which 99 % of such
// runs were expected. Only whole epochs are counted, so one more or less is never surprising.
bool IsSurprising(const Knowledge& knowledge, const ArmKnowledge& arm, double log_epochs) {
  const double noise = arm.has_results ? knowledge.noise : CautiousNoise(knowledge.noise);
  const double sigma = std::sqrt(arm.log_epochs_variance + noise);
  const double epochs = std::exp(log_epochs);
  if (log_epochs > arm.log_epochs)
    return std::log(std::max(epochs - 1, 1.0)) - arm.log_epochs > kSurprise * sigma;
  return arm.log_epochs - std::log(epochs + 1) > kSurprise * sigma;
}

}  // namespace

KnowledgeGradientPolicy::KnowledgeGradientPolicy(const PolicySpec& spec, const Terms& terms)
    : spec_(spec),
      terms_(terms),
      source_(spec.batch_sizes, spec.default_batch_size),
      history_(terms.prior, spec.batch_sizes.size(), spec.window) {
  if (terms.safe) safe_.emplace(*terms.safe);
  for (const PriorArm& arm : terms.prior.arms)
    others_horizon_ += static_cast<double>(arm.converged);
  others_horizon_ = std::min(others_horizon_, kLongestHorizonOfOthers);
  for (const auto& [model, costs] : terms.prior.epoch_costs)
    for (std::size_t i = 0; i < costs.size() && i < spec.batch_sizes.size(); ++i)
      table_.LearnFromOtherJobs(model, spec.batch_sizes[i], costs[i]);
}

const Knowledge& KnowledgeGradientPolicy::KnowledgeOn(std::string_view gpu_model) const {
  const bool same_model = latest_model_ == gpu_model;
  if (latest_knowledge_ && same_model) return *latest_knowledge_;
  if (!same_model || latest_changes_ != table_.changes()) {
    latest_costs_ = BelieveEpochCosts(table_, gpu_model, spec_.batch_sizes);
    latest_changes_ = table_.changes();
  }
  latest_knowledge_ = source_.About(history_, latest_costs_);
  latest_model_ = gpu_model;
  return *latest_knowledge_;
}

std::size_t KnowledgeGradientPolicy::ArmIndex(int batch_size) const {
  const auto found = std::ranges::lower_bound(spec_.batch_sizes, batch_size);
  return static_cast<std::size_t>(found - spec_.batch_sizes.begin());
}

// A job that has recurred t times is likely to recur about t times more, and so are all jobs of its
// kind together: they gain from what this one finds. A result is of no use after it has left the
// window, which bounds the horizon.
double KnowledgeGradientPolicy::Horizon(std::int64_t recurrence) const {
  double horizon = std::max(static_cast<double>(recurrence), others_horizon_);
  if (spec_.window > 0) horizon = std::min(horizon, static_cast<double>(spec_.window));
  return std::max(kShortestHorizon, horizon);
}

// Chooses while nothing has converged: the batch size nearest to the default that was not dropped.
// When all were dropped, the default is as good as any.
int KnowledgeGradientPolicy::NearestUndropped() const {
  int nearest = spec_.default_batch_size;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < spec_.batch_sizes.size(); ++i) {
    const double octaves =
        std::abs(std::log2(spec_.batch_sizes[i]) - std::log2(spec_.default_batch_size));
    if (history_.arms()[i].dropped || octaves >= least) continue;
    least = octaves;
    nearest = spec_.batch_sizes[i];
  }
  return nearest;
}

std::optional<std::size_t> KnowledgeGradientPolicy::Explored(const Knowledge& knowledge,
                                                             std::int64_t recurrence) const {
  std::optional<std::size_t> explored;
  // Until this job has a result of its own, it is unknown how much it needs at all, which says
  // nothing for any other batch size.
  if (knowledge.arms[*knowledge.leader].assumed) return explored;
  if (IsCheckup(recurrence)) explored = MostPromising(knowledge);
  if (explored) return explored;
  return MostValuable(knowledge, Horizon(recurrence), spec_.beta.value_or(kDefaultBeta));
}

bool KnowledgeGradientPolicy::ContradictsOthers(std::string_view gpu_model, int batch_size,
                                                Joules epoch_cost) const {
  constexpr double kLargestRatio = 1.5;
  const auto others = table_.CostInOtherJobs(gpu_model, batch_size);
  if (!others || !(epoch_cost > Joules(0))) return false;
  const double ratio = epoch_cost / *others;
  return ratio > kLargestRatio || ratio < 1 / kLargestRatio;
}

Choice KnowledgeGradientPolicy::Choose(const Situation& situation) { return Decide(situation); }

Choice KnowledgeGradientPolicy::Decide(const Situation& situation) const {
  const Knowledge& knowledge = KnowledgeOn(situation.gpu_model);
  const Choice free = DecideFreely(knowledge, situation);
  if (!safe_ || free.batch_size == spec_.default_batch_size) return free;
  // A default that does not reach the target bounds nothing.
  const ArmEpochs& usual = history_.arms()[ArmIndex(spec_.default_batch_size)];
  if (usual.runs > 0 && usual.converged == 0) return free;
  if (situation.attempt == 0 && IsSafe(knowledge, free.batch_size)) return free;
  const RunRole calm = situation.exploring ? RunRole::kConcurrent : RunRole::kExploiting;
  if (situation.attempt == 0 && knowledge.leader) {
    const int leader = knowledge.arms[*knowledge.leader].batch_size;
    if (IsSafe(knowledge, leader)) return {.batch_size = leader, .role = calm};
  }
  return {.batch_size = spec_.default_batch_size, .role = calm};
}

// --- safety ---

SafeLedger::Default KnowledgeGradientPolicy::UsualRun(const Knowledge& knowledge) const {
  const ArmKnowledge& usual = knowledge.arms[ArmIndex(spec_.default_batch_size)];
  return {.log_epochs = usual.log_epochs,
          .variance = usual.log_epochs_variance,
          .noise = knowledge.noise};
}

double KnowledgeGradientPolicy::RelativeEpochCost(const Knowledge& knowledge,
                                                  std::size_t arm) const {
  return std::exp(knowledge.arms[arm].log_epoch_cost -
                  knowledge.arms[ArmIndex(spec_.default_batch_size)].log_epoch_cost);
}

// The default itself always is; others only once it is known what the default costs.
bool KnowledgeGradientPolicy::IsSafe(const Knowledge& knowledge, int batch_size) const {
  if (batch_size == spec_.default_batch_size) return true;
  const ArmKnowledge& usual = knowledge.arms[ArmIndex(spec_.default_batch_size)];
  if (!usual.has_results || !usual.profiled) return false;
  const ArmKnowledge& arm = knowledge.arms[ArmIndex(batch_size)];
  const double noise = arm.has_results ? knowledge.noise : CautiousNoise(knowledge.noise);
  constexpr double kProfilingEpochs = 1.0;  // The first epoch may cost twice as much.
  const double epoch_cost = RelativeEpochCost(knowledge, ArmIndex(batch_size));
  return safe_->Allows(UsualRun(knowledge),
                       {.log_cost = arm.log_epochs + std::log(epoch_cost),
                        .variance = arm.log_cost_variance() + noise,
                        .extra = arm.profiled ? 0.0 : kProfilingEpochs * epoch_cost});
}

// To stop a run is safe while all that it has cost may be lost. After that it goes on as far as the
// bound allows, because only its target can still save it.
int KnowledgeGradientPolicy::SafeBudget(const Knowledge& knowledge, const PlannedRun& run,
                                        int budget) const {
  if (!safe_ || run.batch_size == spec_.default_batch_size) return budget;
  const SafeLedger::Default usual = UsualRun(knowledge);
  const double epoch_cost = RelativeEpochCost(knowledge, ArmIndex(run.batch_size));
  const double allowance = safe_->Allowance(usual);
  if (budget * epoch_cost <= allowance) return budget;
  const double most = (allowance + std::exp(usual.log_epochs + usual.noise / 2)) / epoch_cost;
  return most < spec_.max_epochs ? std::max(budget, static_cast<int>(most)) : spec_.max_epochs;
}

void KnowledgeGradientPolicy::CountForSafety(const RunResult& result) {
  if (!safe_) return;
  if (result.run.batch_size == spec_.default_batch_size)
    return safe_->AddDefaultRun(static_cast<double>(result.epochs));
  const Knowledge& knowledge = KnowledgeOn(result.run.gpu_model);
  const ArmKnowledge& usual = knowledge.arms[ArmIndex(spec_.default_batch_size)];
  safe_->AddOtherRun(result.cost.value() / std::exp(usual.log_epoch_cost), result.converged);
  safe_->CountRisk();
}

Choice KnowledgeGradientPolicy::DecideFreely(const Knowledge& knowledge,
                                             const Situation& situation) const {
  const int leader = knowledge.leader ? knowledge.arms[*knowledge.leader].batch_size : 0;
  if (situation.exploring)
    return {.batch_size = knowledge.leader ? leader : NearestUndropped(),
            .role = RunRole::kConcurrent};
  if (!knowledge.leader) return {.batch_size = NearestUndropped(), .role = RunRole::kExploring};
  std::optional<std::size_t> explored;
  if (situation.attempt == 0) explored = Explored(knowledge, situation.recurrence);
  if (!explored) return {.batch_size = leader, .role = RunRole::kExploiting};
  return {.batch_size = knowledge.arms[*explored].batch_size, .role = RunRole::kExploring};
}

// --- words ---

namespace {

// "2.10 ± 0.10 MJ": the expected cost of a run to the target.
std::string CostText(const Knowledge& knowledge, const ArmKnowledge& arm) {
  const double cost = std::exp(arm.log_cost() + knowledge.noise / 2);
  return WithSigma(Joules(cost), Joules(cost * std::sqrt(std::expm1(arm.log_cost_variance()))));
}

std::int64_t NextCheckup(std::int64_t recurrence) {
  std::int64_t checkup = 10;
  while (checkup < recurrence) checkup *= 2;
  return checkup;
}

}  // namespace

std::string KnowledgeGradientPolicy::WhyWithoutLeader(const Choice& choice) const {
  if (history_.arms()[ArmIndex(choice.batch_size)].dropped)
    return fmt::format(
        "No batch size has reached the target, so the default, {}, is as good as any.",
        choice.batch_size);
  return fmt::format(
      "No run under Zeus has reached the target yet: batch sizes are tried from the default "
      "outwards, and {} is the nearest that has not failed{}.",
      choice.batch_size,
      choice.role == RunRole::kConcurrent ? ", also while another run explores" : "");
}

std::string KnowledgeGradientPolicy::WhyLeader(const Knowledge& knowledge,
                                               const Situation& situation) const {
  const ArmKnowledge& leader = knowledge.arms[*knowledge.leader];
  const std::string best =
      fmt::format("batch size {}, which costs least as far as is known: {} to the target",
                  leader.batch_size, CostText(knowledge, leader));
  if (leader.assumed)
    return fmt::format(
        "The run takes batch size {}, which cost least in the {} other jobs of this kind: {} to "
        "the "
        "target.",
        leader.batch_size, terms_.prior.jobs, CostText(knowledge, leader));
  if (situation.exploring)
    return fmt::format("While another run explores, this one takes {}.", best);
  if (situation.attempt > 0)
    return fmt::format("A try before did not reach the target, so the recurrence goes on with {}.",
                       best);
  const double horizon = Horizon(situation.recurrence);
  const auto prospect = BestProspect(knowledge, horizon, spec_.beta.value_or(kDefaultBeta));
  if (!prospect)
    return fmt::format("The run takes {}, and no other is left that may be tried.", best);
  return fmt::format(
      "The run takes {}; no other is worth a try: {} at {} comes next, and to explore it would "
      "cost {} more than it may save in the {:.0f} recurrences that are expected.",
      best, knowledge.arms[prospect->arm].batch_size,
      CostText(knowledge, knowledge.arms[prospect->arm]), EnergyText(Joules(-prospect->value)),
      horizon);
}

std::string KnowledgeGradientPolicy::WhyExplored(const Knowledge& knowledge,
                                                 const Situation& situation, int batch_size) const {
  const ArmKnowledge& arm = knowledge.arms[ArmIndex(batch_size)];
  const ArmKnowledge& leader = knowledge.arms[*knowledge.leader];
  const std::string compared =
      fmt::format("{} is expected to cost {} to the target, against {} with {}", batch_size,
                  CostText(knowledge, arm), CostText(knowledge, leader), leader.batch_size);
  const double horizon = Horizon(situation.recurrence);
  const auto prospect = BestProspect(knowledge, horizon, spec_.beta.value_or(kDefaultBeta));
  const bool pays =
      prospect && prospect->value > 0 && knowledge.arms[prospect->arm].batch_size == batch_size;
  if (!pays)
    return fmt::format(
        "Recurrence {} checks the beliefs: batch size {}, and it may be less than that.",
        situation.recurrence, compared);
  return fmt::format(
      "The run explores: batch size {}, and to know better is worth {} more than the run may cost, "
      "over the {:.0f} recurrences that are expected.",
      compared, EnergyText(Joules(prospect->value)), horizon);
}

std::string KnowledgeGradientPolicy::WhySafe(const Choice& choice) const {
  return fmt::format(
      "The run takes batch size {}: with another one, all recurrences together might cost more "
      "than "
      "{:g} % above what they cost with the default, {}.",
      choice.batch_size, 100 * *terms_.safe, spec_.default_batch_size);
}

Explanation KnowledgeGradientPolicy::Explain(const Situation& situation) const {
  const Knowledge& knowledge = KnowledgeOn(situation.gpu_model);
  Explanation told{.choice = Decide(situation)};
  if (!knowledge.leader) {
    told.why = WhyWithoutLeader(told.choice);
    told.outlook = "Still learning: no run under Zeus has reached the target yet.";
    return told;
  }
  if (told.choice != DecideFreely(knowledge, situation))
    told.why = WhySafe(told.choice);
  else
    told.why = told.choice.role == RunRole::kExploring
                   ? WhyExplored(knowledge, situation, told.choice.batch_size)
                   : WhyLeader(knowledge, situation);
  const auto next =
      MostValuable(knowledge, Horizon(situation.recurrence), spec_.beta.value_or(kDefaultBeta));
  if (situation.exploring) {
    told.outlook = "Still learning: a run that explores is under way.";
  } else if (next) {
    told.outlook = fmt::format("Still learning: batch size {} is worth a try.",
                               knowledge.arms[*next].batch_size);
  } else {
    told.settled = true;
    told.outlook = fmt::format(
        "Done learning for now: no other batch size is worth a try, and recurrence {} checks that "
        "again.",
        NextCheckup(situation.recurrence));
  }
  return told;
}

int KnowledgeGradientPolicy::EpochBudget(const PlannedRun& run, Joules epoch_cost) const {
  const Knowledge& knowledge = KnowledgeOn(run.gpu_model);
  return SafeBudget(knowledge, run, FreeBudget(knowledge, run, epoch_cost));
}

int KnowledgeGradientPolicy::FreeBudget(const Knowledge& knowledge, const PlannedRun& run,
                                        Joules epoch_cost) const {
  if (!spec_.beta || !knowledge.leader || run.attempt >= kBoundedTries) return spec_.max_epochs;
  const ArmKnowledge& arm = knowledge.arms[ArmIndex(run.batch_size)];
  if (run.recurrence == 0 && !arm.assumed) return spec_.max_epochs;
  if (arm.assumed && ContradictsOthers(run.gpu_model, run.batch_size, epoch_cost)) return 0;
  if (!arm.converged) return NewArmBudget(knowledge, run, epoch_cost);
  const double epochs = std::ceil(*spec_.beta * std::exp(arm.log_epochs));
  return epochs < spec_.max_epochs ? static_cast<int>(epochs) : spec_.max_epochs;
}

int KnowledgeGradientPolicy::NewArmBudget(const Knowledge& knowledge, const PlannedRun& run,
                                          Joules epoch_cost) const {
  const std::size_t arm = ArmIndex(run.batch_size);
  // Without a profile, the first epoch is needed to measure the epoch cost.
  const int first = knowledge.arms[arm].profiled ? 0 : 1;
  const double affordable = std::floor(*spec_.beta * knowledge.leader_cost / epoch_cost.value());
  const int limit = affordable < spec_.max_epochs ? std::max(first, static_cast<int>(affordable))
                                                  : spec_.max_epochs;
  if (run.attempt == 0 && IsCheckup(run.recurrence)) return limit;
  return WorthwhileEpochs(knowledge,
                          {.arm = arm, .epoch_cost = epoch_cost, .first = first, .limit = limit},
                          Horizon(run.recurrence));
}

void KnowledgeGradientPolicy::Observe(const RunResult& result) {
  const PlannedRun& run = result.run;
  if (result.epoch_cost && ContradictsOthers(run.gpu_model, run.batch_size, *result.epoch_cost)) {
    history_.ForgetOthers();
    table_.ForgetOtherJobs();
    latest_knowledge_.reset();
  }
  if (result.epoch_cost)
    LearnEpochCost(run.gpu_model, run.batch_size, *result.epoch_cost);
  else if (result.epochs > 0)
    LearnEpochCost(run.gpu_model, run.batch_size, result.cost / result.epochs);
  const Knowledge& knowledge = KnowledgeOn(run.gpu_model);
  const std::size_t index = ArmIndex(run.batch_size);
  const ArmKnowledge& arm = knowledge.arms[index];
  const ArmEpochs& shown = history_.arms()[index];
  RunRecord record{.recurrence = run.recurrence,
                   .arm = index,
                   .converged = result.converged,
                   .epochs = result.epochs};
  if (arm.converged) {
    record.surprising = IsSurprising(knowledge, arm, EpochHistory::LogEpochs(record));
  } else if (!result.converged) {
    const double epoch_cost = std::exp(arm.log_epoch_cost);
    record.spent = result.cost.value() / epoch_cost;
    record.drops =
        result.epochs >= spec_.max_epochs || shown.stops + 1 >= kMostStops ||
        (knowledge.leader && (shown.spent + record.spent) * epoch_cost >= knowledge.leader_cost);
  }
  CountForSafety(result);
  history_.Add(record);
  latest_knowledge_.reset();
}

void KnowledgeGradientPolicy::LearnEpochCost(std::string_view gpu_model, int batch_size,
                                             Joules cost) {
  const auto before = table_.Profiled(gpu_model, batch_size);
  table_.Refine(gpu_model, batch_size, cost);
  if (table_.Profiled(gpu_model, batch_size) != before) latest_knowledge_.reset();
}

std::optional<Joules> KnowledgeGradientPolicy::ProfiledEpochCost(std::string_view gpu_model,
                                                                 int batch_size) const {
  return table_.Profiled(gpu_model, batch_size);
}

std::vector<ArmBelief> KnowledgeGradientPolicy::Beliefs(std::string_view gpu_model) const {
  const Knowledge& knowledge = KnowledgeOn(gpu_model);
  const bool any_cost = table_.Estimate(gpu_model, spec_.default_batch_size).has_value();
  std::vector<ArmBelief> beliefs;
  for (std::size_t i = 0; i < knowledge.arms.size(); ++i) {
    const ArmKnowledge& arm = knowledge.arms[i];
    const ArmEpochs& shown = history_.arms()[i];
    ArmBelief& belief =
        beliefs.emplace_back(ArmBelief{.batch_size = arm.batch_size,
                                       .runs = static_cast<int>(shown.runs),
                                       .converged = static_cast<int>(shown.converged),
                                       .epoch_cost_profiled = arm.profiled});
    if (shown.dropped)
      belief.state = ArmState::kDropped;
    else if (shown.runs > 0)
      belief.state = ArmState::kCandidate;
    if (any_cost) belief.epoch_cost = Joules(std::exp(arm.log_epoch_cost));
    // Before any run converged, the level of the curve of epochs is unknown.
    if (!knowledge.leader) continue;
    belief.epochs = std::exp(arm.log_epochs + knowledge.noise / 2);
    belief.cost = Joules(std::exp(arm.log_cost() + knowledge.noise / 2));
    belief.cost_sigma = *belief.cost * std::sqrt(std::expm1(arm.log_cost_variance()));
  }
  return beliefs;
}

int KnowledgeGradientPolicy::Best(std::string_view gpu_model) const {
  const Knowledge& knowledge = KnowledgeOn(gpu_model);
  return knowledge.leader ? knowledge.arms[*knowledge.leader].batch_size : NearestUndropped();
}

std::string_view KnowledgeGradientPolicy::stage() const {
  const bool any =
      std::ranges::any_of(history_.arms(), [](const ArmEpochs& arm) { return arm.converged > 0; });
  return any ? "optimizing" : "starting";
}

Json KnowledgeGradientPolicy::Save() const {
  Json state = NewPolicyState("knowledge_gradient");
  state["epoch_costs"] = table_.Save();
  state["epochs"] = history_.Save();
  if (safe_) state["safe"] = safe_->Save();
  return state;
}

Result<KnowledgeGradientPolicy> KnowledgeGradientPolicy::Restore(const PolicySpec& spec,
                                                                 const Json& state,
                                                                 const Terms& terms) {
  KnowledgeGradientPolicy policy(spec, terms);
  ZEUS_TRY(const Json* const costs, FindPart(state, "epoch_costs"));
  ZEUS_TRY(policy.table_, EpochCostTable::Restore(*costs));
  ZEUS_TRY(const Json* const epochs, FindPart(state, "epochs"));
  ZEUS_RETURN_IF_ERROR(policy.history_.Restore(*epochs));
  if (policy.safe_) {
    ZEUS_TRY(const Json* const safe, FindPart(state, "safe"));
    ZEUS_RETURN_IF_ERROR(policy.safe_->Restore(*safe));
  }
  return policy;
}

}  // namespace zeus
