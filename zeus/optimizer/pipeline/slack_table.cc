#include "zeus/optimizer/pipeline/slack_table.h"

#include <algorithm>
#include <cstddef>

namespace zeus::pipeline {
SlackTable::SlackTable(const Problem& problem)
    : problem_(problem), rank_(problem.computations.size()), queued_(problem.computations.size()) {
  const auto order = problem.graph.topological_order();
  for (std::size_t i = 0; i < order.size(); ++i) rank_[At(order[i])] = static_cast<int>(i);
}

void SlackTable::Reset(std::span<const Seconds> durations, Seconds deadline) {
  durations_.assign(durations.begin(), durations.end());
  earliest_start_.assign(durations.size(), Seconds(0));
  latest_end_.assign(durations.size(), deadline);
  makespan_ = Seconds(0);
  const auto order = problem_.graph.topological_order();
  for (const int computation : order) {
    const Seconds end = earliest_start_[At(computation)] + durations_[At(computation)];
    makespan_ = std::max(makespan_, end);
    for (const int next : problem_.graph.Successors(computation))
      earliest_start_[At(next)] = std::max(earliest_start_[At(next)], end);
  }
  for (std::size_t i = order.size(); i-- > 0;) {
    const Seconds start = latest_end_[At(order[i])] - durations_[At(order[i])];
    for (const int before : problem_.graph.Predecessors(order[i]))
      latest_end_[At(before)] = std::min(latest_end_[At(before)], start);
  }
}

void SlackTable::Lengthen(int computation, Seconds by) {
  durations_[At(computation)] += by;
  DelaySuccessors(computation);
  HurryPredecessors(computation);
}

void SlackTable::DelaySuccessors(int computation) {
  const auto later = [this](int a, int b) { return rank_[At(a)] > rank_[At(b)]; };
  queue_.push_back(computation);
  while (!queue_.empty()) {
    std::ranges::pop_heap(queue_, later);
    const int at = queue_.back();
    queue_.pop_back();
    queued_[At(at)] = false;
    const Seconds end = earliest_start_[At(at)] + durations_[At(at)];
    makespan_ = std::max(makespan_, end);
    for (const int next : problem_.graph.Successors(at)) {
      if (earliest_start_[At(next)] >= end) continue;
      earliest_start_[At(next)] = end;
      if (queued_[At(next)]) continue;
      queued_[At(next)] = true;
      queue_.push_back(next);
      std::ranges::push_heap(queue_, later);
    }
  }
}

void SlackTable::HurryPredecessors(int computation) {
  const auto earlier = [this](int a, int b) { return rank_[At(a)] < rank_[At(b)]; };
  queue_.push_back(computation);
  while (!queue_.empty()) {
    std::ranges::pop_heap(queue_, earlier);
    const int at = queue_.back();
    queue_.pop_back();
    queued_[At(at)] = false;
    const Seconds start = latest_end_[At(at)] - durations_[At(at)];
    for (const int before : problem_.graph.Predecessors(at)) {
      if (latest_end_[At(before)] <= start) continue;
      latest_end_[At(before)] = start;
      if (queued_[At(before)]) continue;
      queued_[At(before)] = true;
      queue_.push_back(before);
      std::ranges::push_heap(queue_, earlier);
    }
  }
}

}  // namespace zeus::pipeline
