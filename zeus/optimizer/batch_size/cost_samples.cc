#include "zeus/optimizer/batch_size/cost_samples.h"

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
  // Anew, so that no rounding error of samples that have left stays behind.
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

}  // namespace zeus
