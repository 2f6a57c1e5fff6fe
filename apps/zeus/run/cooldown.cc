#include "apps/zeus/run/cooldown.h"

#include <algorithm>

namespace zeus::cli {

Cooldown::Cooldown(std::vector<Celsius> start) : start_(std::move(start)) {}

bool Cooldown::MayBegin(TimePoint now, const std::vector<Celsius>& temperatures) {
  // A GPU was lost or came back: what remains cannot be compared.
  if (temperatures.size() != start_.size()) return true;
  recent_.emplace_back(now, temperatures);
  // The oldest kept reading is the last one that is at least kSteadyTime old.
  while (recent_.size() > 1 && now - recent_[1].first >= kSteadyTime) recent_.pop_front();
  return BackAtStart(temperatures) || Steady();
}

bool Cooldown::BackAtStart(const std::vector<Celsius>& temperatures) const {
  return std::ranges::equal(temperatures, start_,
                            [](Celsius now, Celsius start) { return now <= start + kTolerance; });
}

bool Cooldown::Steady() const {
  if (recent_.back().first - recent_.front().first < kSteadyTime) return false;
  for (std::size_t gpu = 0; gpu < start_.size(); ++gpu) {
    const auto of_gpu = [gpu](const auto& reading) { return reading.second[gpu]; };
    const auto [low, high] = std::ranges::minmax_element(recent_, {}, of_gpu);
    if (of_gpu(*high) - of_gpu(*low) > kSteady) return false;
  }
  return true;
}

}  // namespace zeus::cli
