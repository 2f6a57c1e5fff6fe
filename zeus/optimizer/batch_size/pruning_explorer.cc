#include "zeus/optimizer/batch_size/pruning_explorer.h"

#include <algorithm>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/optimizer/batch_size/policy_state.h"

namespace zeus {

PruningExplorer::PruningExplorer(std::vector<int> batch_sizes, int default_batch_size, int rounds)
    : candidates_(std::move(batch_sizes)),
      job_default_(default_batch_size),
      default_(default_batch_size),
      rounds_left_(rounds) {}

std::optional<int> PruningExplorer::Next() const {
  if (rounds_left_ == 0) return std::nullopt;
  return NextInRound();
}

std::optional<int> PruningExplorer::NextInRound() const {
  const auto middle = std::ranges::upper_bound(candidates_, default_);
  // Returns the first batch size that is not explored, unless one before it failed.
  const auto next = [this](auto begin, auto end) -> std::optional<int> {
    for (auto it = begin; it != end; ++it) {
      const auto found = explored_.find(*it);
      if (found == explored_.end()) return *it;
      if (!found->second) break;
    }
    return std::nullopt;
  };
  const auto down =
      next(std::make_reverse_iterator(middle), std::make_reverse_iterator(candidates_.begin()));
  return down ? down : next(middle, candidates_.end());
}

void PruningExplorer::Observe(bool converged, Joules cost) {
  const std::optional<int> explored = Next();
  if (!explored) return;
  explored_[*explored] = converged ? Cost(cost) : std::nullopt;
  any_converged_ |= converged;
  if (!NextInRound()) EndRound();
}

void PruningExplorer::EndRound() {
  std::vector<int> converged;
  std::vector<int> untried;
  for (const int batch_size : candidates_) {
    const auto found = explored_.find(batch_size);
    if (found == explored_.end())
      untried.push_back(batch_size);
    else if (found->second)
      converged.push_back(batch_size);
  }
  if (!converged.empty()) {
    default_ = *std::ranges::min_element(
        converged, {}, [this](int batch_size) { return *explored_.at(batch_size); });
    candidates_ = std::move(converged);
    --rounds_left_;
  } else if (any_converged_) {
    // Nothing converged in this round, but every candidate did in an earlier one: they stay. (The
    // authors' implementation raises an error here.)
    --rounds_left_;
  } else if (!untried.empty()) {
    // Nothing has converged yet, not even the default, so the failures do not prune the batch sizes
    // that the walk did not reach: it goes on from the nearest of them.
    const auto above = std::ranges::upper_bound(untried, default_);
    default_ = above == untried.begin() ? *above : *std::prev(above);
    candidates_ = std::move(untried);
  } else {
    GiveUp();
  }
  explored_.clear();
}

// Every batch size failed, so pruning has nothing to go by: the job keeps its default.
void PruningExplorer::GiveUp() {
  default_ = job_default_;
  candidates_ = {job_default_};
  rounds_left_ = 0;
}

bool PruningExplorer::Dropped(int batch_size) const {
  if (!std::ranges::binary_search(candidates_, batch_size)) return true;
  const auto found = explored_.find(batch_size);
  return found != explored_.end() && !found->second;
}

Json PruningExplorer::Save() const {
  Json explored = Json::array();
  for (const auto& [batch_size, cost] : explored_) {
    explored.push_back(batch_size);
    explored.push_back(cost ? Json(cost->value()) : Json());
  }
  Json state;
  state["rounds_left"] = rounds_left_;
  state["default"] = default_;
  state["any_converged"] = any_converged_;
  state["candidates"] = candidates_;
  state["explored"] = std::move(explored);
  return state;
}

Result<PruningExplorer> PruningExplorer::Restore(PruningExplorer fresh, const Json& state) {
  PruningExplorer explorer = std::move(fresh);
  const std::vector<int> all = explorer.candidates_;
  const int rounds = explorer.rounds_left_;
  ZEUS_TRY(explorer.rounds_left_, GetField<int>(state, "rounds_left"));
  ZEUS_TRY(explorer.default_, GetField<int>(state, "default"));
  ZEUS_TRY(explorer.any_converged_, GetField<bool>(state, "any_converged"));
  ZEUS_TRY(explorer.candidates_, GetField<std::vector<int>>(state, "candidates"));
  ZEUS_TRY(const Json* const explored, FindPart(state, "explored"));
  if (!explored->is_array() || explored->size() % 2 != 0) return DamagedState("explored");
  for (std::size_t i = 0; i < explored->size(); i += 2) {
    ZEUS_TRY(const int batch_size, ElementAt<int>(*explored, i, "explored"));
    Cost cost;
    if (!(*explored)[i + 1].is_null()) {
      ZEUS_TRY(const double joules, NumberAt(*explored, i + 1, "explored"));
      cost = Joules(joules);
    }
    explorer.explored_[batch_size] = cost;
  }
  const std::vector<int>& candidates = explorer.candidates_;
  if (explorer.rounds_left_ < 0 || explorer.rounds_left_ > rounds || candidates.empty() ||
      !std::ranges::is_sorted(candidates) || !std::ranges::includes(all, candidates) ||
      !std::ranges::binary_search(candidates, explorer.default_))
    return DamagedState("pruning");
  // Earlier versions kept the last batch size that they had tried when they gave up.
  const bool gave_up = rounds > 0 && explorer.rounds_left_ == 0 && !explorer.any_converged_;
  if (gave_up) explorer.GiveUp();
  return explorer;
}

}  // namespace zeus
