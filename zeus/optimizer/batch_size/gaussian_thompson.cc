// The belief about an arm is the conjugate posterior of a normal mean: the precisions of prior and
// samples add up, with the variance of the samples taken as that of the costs. Predict() draws once
// from each belief and takes the arm with the least draw; arms with too few samples to have a
// variance are tried first. Samples are kept in units of the epoch cost, so a sample from one GPU
// model counts on another.
#include "zeus/optimizer/batch_size/gaussian_thompson.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "zeus/base/json.h"
#include "zeus/optimizer/batch_size/policy_state.h"

namespace zeus {

double CostSamples::variance() const {
  return count_ == 0 ? 0.0 : squares_ / static_cast<double>(count_);
}

// Welford's update: equal samples leave the sum of squares at exactly 0.
void CostSamples::Count(const Sample& sample) {
  ++count_;
  if (sample.converged) ++converged_;
  const double deviation = sample.cost - mean_;
  mean_ += deviation / static_cast<double>(count_);
  squares_ += deviation * (sample.cost - mean_);
}

void CostSamples::Add(double cost, bool converged) {
  const Sample sample{.cost = cost, .converged = converged};
  if (window_ == 0) return Count(sample);
  latest_.push_back(sample);
  if (std::ssize(latest_) > window_) latest_.erase(latest_.begin());
  // Recompute from scratch: subtracting the samples that left would accumulate rounding errors.
  count_ = converged_ = 0;
  mean_ = squares_ = 0.0;
  for (const Sample& one : latest_) Count(one);
}

Json CostSamples::Save() const {
  if (window_ == 0) return Json::array({count_, converged_, mean_, squares_});
  Json state = Json::array();
  for (const Sample& sample : latest_) {
    state.push_back(sample.cost);
    state.push_back(sample.converged ? 1 : 0);
  }
  return state;
}

Result<CostSamples> CostSamples::Restore(int window, const Json& state) {
  CostSamples samples(window);
  if (window == 0) {
    ZEUS_TRY(samples.count_, ElementAt<std::int64_t>(state, 0, "arms"));
    ZEUS_TRY(samples.converged_, ElementAt<std::int64_t>(state, 1, "arms"));
    ZEUS_TRY(samples.mean_, NumberAt(state, 2, "arms"));
    ZEUS_TRY(samples.squares_, NumberAt(state, 3, "arms"));
    if (samples.converged_ < 0 || samples.converged_ > samples.count_ || samples.squares_ < 0)
      return DamagedState("arms");
    return samples;
  }
  if (!state.is_array() || state.size() % 2 != 0 ||
      state.size() > 2 * static_cast<std::size_t>(window))
    return DamagedState("arms");
  for (std::size_t i = 0; i < state.size(); i += 2) {
    ZEUS_TRY(const double cost, NumberAt(state, i, "arms"));
    ZEUS_TRY(const int converged, ElementAt<int>(state, i + 1, "arms"));
    samples.Add(cost, converged != 0);
  }
  return samples;
}

GaussianThompson::GaussianThompson(std::span<const int> batch_sizes, const Options& options)
    : options_(options) {
  for (const int batch_size : batch_sizes)
    samples_.emplace(batch_size, CostSamples(options.window));
}

void GaussianThompson::Observe(int batch_size, double cost, bool converged) {
  samples_.at(batch_size).Add(cost, converged);
}

std::optional<CostBelief> GaussianThompson::Belief(int batch_size, Joules epoch_cost) const {
  return BeliefFrom(samples_.at(batch_size), epoch_cost);
}

std::optional<CostBelief> GaussianThompson::BeliefFrom(const CostSamples& samples,
                                                       Joules epoch_cost) const {
  const double count = static_cast<double>(samples.count());
  const double prior_precision = options_.prior_precision;
  if (count == 0) {
    if (prior_precision <= 0) return std::nullopt;
    return CostBelief{.mean = Joules(-options_.prior_mean),
                      .sigma = Joules(1 / std::sqrt(prior_precision))};
  }
  const double mean = samples.mean() * epoch_cost.value();
  const double variance = samples.variance() * epoch_cost.value() * epoch_cost.value();
  if (variance <= 0) return CostBelief{.mean = Joules(mean), .sigma = Joules(0)};
  // Zeus §4.3, Algorithm 2, with numerator and denominator multiplied by the variance: the
  // precision n / variance would overflow for a very small variance.
  const double weight = prior_precision * variance;
  return CostBelief{
      .mean = Joules((count * mean - weight * options_.prior_mean) / (count + weight)),
      .sigma = Joules(std::sqrt(variance / (count + weight)))};
}

bool GaussianThompson::NeedsObservations(const CostSamples& samples) const {
  const std::int64_t count = samples.count();
  return count < options_.explorations || (count == 0 && options_.prior_precision <= 0);
}

int GaussianThompson::Predict(std::span<const int> arms, std::span<const Joules> epoch_costs,
                              Random& random) const {
  const auto needs = [this](int arm) { return NeedsObservations(samples_.at(arm)); };
  if (const auto needing = std::ranges::count_if(arms, needs); needing > 0) {
    std::uint64_t skipped = random.Below(static_cast<std::uint64_t>(needing));
    return *std::ranges::find_if(arms, [&](int arm) { return needs(arm) && skipped-- == 0; });
  }
  int best = arms.front();
  Joules least(std::numeric_limits<double>::infinity());
  for (const int arm : arms) {
    const auto samples = samples_.find(arm);
    const CostBelief belief = *BeliefFrom(samples->second, CostAt(epoch_costs, samples));
    Joules drawn = belief.mean;
    if (belief.sigma > Joules(0)) drawn += random.Normal() * belief.sigma;
    if (drawn >= least) continue;
    least = drawn;
    best = arm;
  }
  return best;
}

std::optional<int> GaussianThompson::FirstUnknown(std::span<const int> arms) const {
  const auto found =
      std::ranges::find_if(arms, [this](int arm) { return NeedsObservations(samples_.at(arm)); });
  return found == arms.end() ? std::nullopt : std::optional(*found);
}

int GaussianThompson::Best(std::span<const int> arms, std::span<const Joules> epoch_costs) const {
  int best = arms.front();
  Joules least(std::numeric_limits<double>::infinity());
  for (const int arm : arms) {
    const auto samples = samples_.find(arm);
    const auto belief = BeliefFrom(samples->second, CostAt(epoch_costs, samples));
    if (!belief || belief->mean >= least) continue;
    least = belief->mean;
    best = arm;
  }
  return best;
}

// While no epoch cost is known, there are no observations to convert, and any unit will do.
Joules GaussianThompson::CostAt(std::span<const Joules> epoch_costs,
                                ByBatchSize<CostSamples>::Place samples) const {
  return epoch_costs.empty() ? Joules(1)
                             : epoch_costs[static_cast<std::size_t>(samples - samples_.begin())];
}

Json GaussianThompson::Save() const {
  Json state = Json::array();
  for (const auto& [batch_size, samples] : samples_) state.push_back(samples.Save());
  return state;
}

Status GaussianThompson::Restore(const Json& state) {
  if (!state.is_array() || state.size() != samples_.size()) return DamagedState("arms");
  std::size_t index = 0;
  for (auto& [batch_size, samples] : samples_) {
    ZEUS_TRY(samples, CostSamples::Restore(options_.window, state[index++]));
  }
  return Ok();
}

}  // namespace zeus
