#include "zeus/optimizer/batch_size/gaussian_thompson.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "zeus/base/json.h"
#include "zeus/optimizer/batch_size/policy_state.h"

namespace zeus {

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
  // The textbook update with both sides multiplied by the variance: with a small one, the precision
  // would be too large for a double.
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

// Without epoch costs there are no costs to convert either.
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
