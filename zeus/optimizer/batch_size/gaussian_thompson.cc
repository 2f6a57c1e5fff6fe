#include "zeus/optimizer/batch_size/gaussian_thompson.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
  const CostSamples& samples = samples_.at(batch_size);
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

int GaussianThompson::Predict(std::span<const int> arms, const EpochCost& epoch_cost,
                              Random& random) const {
  std::vector<int> unexplored;
  for (const int arm : arms)
    if (samples_.at(arm).count() < options_.explorations || !Belief(arm, epoch_cost(arm)))
      unexplored.push_back(arm);
  if (!unexplored.empty()) return unexplored[random.Below(unexplored.size())];
  int best = arms.front();
  Joules least(std::numeric_limits<double>::infinity());
  for (const int arm : arms) {
    const CostBelief belief = *Belief(arm, epoch_cost(arm));
    const Joules drawn = belief.mean + random.Normal() * belief.sigma;
    if (drawn >= least) continue;
    least = drawn;
    best = arm;
  }
  return best;
}

int GaussianThompson::Best(std::span<const int> arms, const EpochCost& epoch_cost) const {
  return *std::ranges::min_element(arms, {}, [&](int arm) {
    const auto belief = Belief(arm, epoch_cost(arm));
    return belief ? belief->mean : Joules(std::numeric_limits<double>::infinity());
  });
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
