#include "zeus/optimizer/batch_size/least_cost.h"

#include <algorithm>

#include "zeus/base/json.h"
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

}  // namespace zeus
