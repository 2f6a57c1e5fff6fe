// For each candidate the gain of one more run is an integral: over what the run could show about
// the candidate's cost, of the amount by which the leader's cost would then be beaten. The cost
// after the run is lognormal, for which this integral has a closed form (that of an option's
// price). It is multiplied by the number of recurrences that are still expected and reduced by the
// extra cost of the run, which may be cut short by early stopping. The candidate of greatest
// positive value is explored.
#include "zeus/optimizer/batch_size/knowledge_gradient.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace zeus {
namespace {

constexpr double kNearOctaves = 1.0;

std::optional<std::size_t> Leader(const std::vector<ArmKnowledge>& arms) {
  std::optional<std::size_t> leader;
  for (std::size_t i = 0; i < arms.size(); ++i)
    if (arms[i].converged && (!leader || arms[i].log_cost() < arms[*leader].log_cost())) leader = i;
  return leader;
}

// Candidates are the batch sizes between those that ever converged, within an octave of them, and
// at least the next one on each side.
void MarkCandidates(const EpochHistory& history, std::span<const double> octaves,
                    std::vector<ArmKnowledge>& arms) {
  const std::span<const ArmEpochs> shown = history.arms();
  const std::ptrdiff_t size = std::ssize(shown);
  std::ptrdiff_t first = size;
  std::ptrdiff_t last = -1;
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    const auto index = static_cast<std::size_t>(i);
    if (!shown[index].ever_converged && !arms[index].assumed) continue;
    first = std::min(first, i);
    last = i;
  }
  if (last < first) return;
  const auto octave = [&](std::ptrdiff_t i) { return octaves[static_cast<std::size_t>(i)]; };
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    const bool next = i >= first - 1 && i <= last + 1;
    const bool near =
        octave(i) >= octave(first) - kNearOctaves && octave(i) <= octave(last) + kNearOctaves;
    const auto index = static_cast<std::size_t>(i);
    arms[index].candidate = (next || near) && !shown[index].dropped;
  }
}

}  // namespace

KnowledgeSource::KnowledgeSource(std::span<const int> batch_sizes, int default_batch_size)
    : batch_sizes_(batch_sizes.begin(), batch_sizes.end()),
      belief_(batch_sizes, default_batch_size) {
  for (const int batch_size : batch_sizes) octaves_.push_back(std::log2(batch_size));
}

Knowledge KnowledgeSource::About(const EpochHistory& history,
                                 std::span<const std::optional<EpochCostBelief>> costs) const {
  Knowledge knowledge{.noise = history.NoiseVariance()};
  const auto epochs = belief_.Update(history.AllEvidence(), history.EvidenceOfOthers());
  const std::span<const ArmEpochs> shown = history.arms();
  knowledge.arms.reserve(batch_sizes_.size());
  for (std::size_t i = 0; i < batch_sizes_.size(); ++i) {
    const EpochCostBelief cost = costs[i].value_or(EpochCostBelief{});
    ArmKnowledge arm{.batch_size = batch_sizes_[i],
                     .log_epochs = epochs[i].mean,
                     .log_epochs_variance = epochs[i].variance,
                     .log_epoch_cost = cost.log_cost,
                     .log_epoch_cost_sigma = cost.sigma,
                     .profiled = cost.profiled,
                     .converged = shown[i].converged > 0 || (costs[i] && history.Assumes(i)),
                     .assumed = shown[i].converged == 0 && costs[i] && history.Assumes(i),
                     .has_results = shown[i].results > 0};
    // A run that was stopped showed that the target needs at least one epoch more.
    if (!arm.converged && shown[i].longest_stop >= 1)
      arm.log_epochs = std::max(arm.log_epochs, std::log(shown[i].longest_stop + 1.0));
    knowledge.arms.push_back(arm);
  }
  knowledge.leader = Leader(knowledge.arms);
  if (knowledge.leader)
    knowledge.leader_cost =
        std::exp(knowledge.arms[*knowledge.leader].log_cost() + knowledge.noise / 2);
  MarkCandidates(history, octaves_, knowledge.arms);
  return knowledge;
}

namespace {

// The standard normal distribution function.
double Cumulative(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// P(X <= limit).
double Below(const Lognormal& x, double limit) {
  if (limit <= 0) return 0.0;
  return Cumulative((std::log(limit) - x.mean_log) / std::sqrt(x.variance_log));
}

// E[X; X <= limit].
double MeanBelow(const Lognormal& x, double limit) {
  if (limit <= 0) return 0.0;
  const double sigma = std::sqrt(x.variance_log);
  return x.Mean() * Cumulative((std::log(limit) - x.mean_log) / sigma - sigma);
}

// P(X > floor). Unlike 1 - P(X <= floor), it is precise in the far tail.
double Above(const Lognormal& x, double floor) {
  if (floor <= 0) return 1.0;
  return Cumulative((x.mean_log - std::log(floor)) / std::sqrt(x.variance_log));
}

double Ratio(double dividend, double divisor) {
  return divisor > 0 ? dividend / divisor : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

double Lognormal::Mean() const { return std::exp(mean_log + variance_log / 2); }

double Lognormal::ExpectedShortfall(double limit) const {
  return ExpectedShortfallAbove(0.0, limit);
}

double Lognormal::MeanAbove(double floor) const {
  if (floor <= 0) return Mean();
  const double sigma = std::sqrt(variance_log);
  const double mean = Mean() * Cumulative((mean_log - std::log(floor)) / sigma + sigma);
  return Ratio(mean, Above(*this, floor));
}

double Lognormal::ExpectedShortfallAbove(double floor, double limit) const {
  if (limit <= floor) return 0.0;
  if (variance_log <= 0) return std::max(0.0, limit - Mean());
  const double probability = Below(*this, limit) - Below(*this, floor);
  const double mean = MeanBelow(*this, limit) - MeanBelow(*this, floor);
  return Ratio(std::max(0.0, limit * probability - mean), Above(*this, floor));
}

namespace {

// Profiling the power limits of a batch size slows its first run down. The extra cost is estimated
// as this share of the cost of a run with the leader.
constexpr double kProfilingShare = 0.05;
constexpr double kOptimism = 1.75;  // Standard deviations below the mean.

// Returns the expected gain of later recurrences from one run with this batch size, less the extra
// cost of that run over one with the leader. After the run, the belief about ln cost has a new
// mean. Seen from now, that mean is normal around the present one, with the variance by which the
// run reduces the uncertainty: v - v * noise / (v + noise) = v^2 / (v + noise).
double ValueOfExploring(const Knowledge& knowledge, const ArmKnowledge& arm, double horizon,
                        double beta) {
  const double uncertainty = arm.log_epochs_variance;
  const double noise = CautiousNoise(knowledge.noise);
  const double epoch_cost_variance = arm.log_epoch_cost_sigma * arm.log_epoch_cost_sigma;
  const Lognormal learned{
      .mean_log = arm.log_cost() + knowledge.noise / 2,
      .variance_log = uncertainty * uncertainty / (uncertainty + noise) + epoch_cost_variance};
  const double leader_cost = knowledge.leader_cost;
  double cost = std::exp(learned.mean_log + arm.log_cost_variance() / 2);
  if (!arm.converged) cost = std::min(cost, beta * leader_cost);
  const double gain = horizon * learned.ExpectedShortfall(leader_cost);
  return gain - (cost - leader_cost) - (arm.profiled ? 0.0 : kProfilingShare * leader_cost);
}

}  // namespace

std::optional<Prospect> BestProspect(const Knowledge& knowledge, double horizon, double beta) {
  std::optional<Prospect> best;
  for (std::size_t i = 0; i < knowledge.arms.size(); ++i) {
    if (!knowledge.arms[i].candidate || i == knowledge.leader) continue;
    const double value = ValueOfExploring(knowledge, knowledge.arms[i], horizon, beta);
    if (std::isnan(value) || (best && !(value > best->value))) continue;
    best = Prospect{.arm = i, .value = value};
  }
  return best;
}

std::optional<std::size_t> MostValuable(const Knowledge& knowledge, double horizon, double beta) {
  const std::optional<Prospect> best = BestProspect(knowledge, horizon, beta);
  if (!best || !(best->value > 0)) return std::nullopt;
  return best->arm;
}

std::optional<std::size_t> MostPromising(const Knowledge& knowledge) {
  std::optional<std::size_t> best;
  double least = std::log(knowledge.leader_cost);
  for (std::size_t i = 0; i < knowledge.arms.size(); ++i) {
    const ArmKnowledge& arm = knowledge.arms[i];
    if (!arm.candidate || i == knowledge.leader) continue;
    const double at_best = arm.log_cost() - kOptimism * std::sqrt(arm.log_cost_variance());
    if (!(at_best < least)) continue;
    least = at_best;
    best = i;
  }
  return best;
}

int WorthwhileEpochs(const Knowledge& knowledge, const NewArmRun& run, double horizon) {
  const ArmKnowledge& known = knowledge.arms[run.arm];
  const Lognormal epochs{
      .mean_log = known.log_epochs,
      .variance_log = known.log_epochs_variance + CautiousNoise(knowledge.noise)};
  // Costs are in epochs of this batch size here. After `done` epochs without convergence, the run
  // goes on while the epochs that it still needs cost at most what stopping loses: the run with the
  // leader that then has to be made instead, and what later recurrences might gain.
  const double leader_cost = knowledge.leader_cost / run.epoch_cost.value();
  int done = run.first;
  for (; done < run.limit; ++done) {
    const double more = epochs.MeanAbove(done) - done;
    const double gain = horizon * epochs.ExpectedShortfallAbove(done, leader_cost);
    if (!(more <= leader_cost + gain)) break;
  }
  return std::min(done, run.limit);
}

}  // namespace zeus
