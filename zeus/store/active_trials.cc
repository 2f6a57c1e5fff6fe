#include "zeus/store/active_trials.h"

#include <algorithm>

namespace zeus {

ActiveTrials::ActiveTrials(std::vector<Trial> trials) {
  for (Trial& trial : trials) {
    const std::int64_t number = trial.number;
    trials_.emplace(number, std::move(trial));
  }
}

const Trial* ActiveTrials::Find(std::int64_t number) const {
  const auto found = trials_.find(number);
  return found == trials_.end() ? nullptr : &found->second;
}

bool ActiveTrials::Has(RunRole role) const {
  return std::ranges::any_of(trials_, [&](const auto& entry) { return entry.second.role == role; });
}

std::vector<Trial> ActiveTrials::Overdue(WallTime now, int limit) const {
  std::vector<Trial> overdue;
  for (const auto& [number, trial] : trials_) {
    if (std::ssize(overdue) >= limit) break;
    if (trial.lease_until < now) overdue.push_back(trial);
  }
  return overdue;
}

void ActiveTrials::Put(const Trial& trial) {
  const Trial* before = Find(trial.number);
  undo_.emplace_back(trial.number, before == nullptr ? std::nullopt : std::optional(*before));
  if (IsActive(trial.status))
    trials_.insert_or_assign(trial.number, trial);
  else
    trials_.erase(trial.number);
}

void ActiveTrials::TakeBack() {
  for (; !undo_.empty(); undo_.pop_back()) {
    auto& [number, before] = undo_.back();
    trials_.erase(number);
    if (before) trials_.emplace(number, *std::move(before));
  }
}

}  // namespace zeus
