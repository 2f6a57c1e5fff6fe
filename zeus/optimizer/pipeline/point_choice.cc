#include "zeus/optimizer/pipeline/point_choice.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <queue>
#include <tuple>

#include "zeus/base/random.h"

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

namespace {

// Limit on visits to computations by exchanges, which take a fraction of a second.
constexpr std::size_t kExchangeVisits = 3'000'000;
constexpr std::uint64_t kExchangeSteps = 2;  // Greatest number of points by which one gets faster.
constexpr std::uint64_t kMostExchanged = 3;  // Greatest number of computations that get faster.

}  // namespace

std::vector<EfficientPoints> FindEfficientPoints(const Problem& problem) {
  std::vector<EfficientPoints> all;
  for (const ComputationKind& kind : problem.kinds) {
    EfficientPoints points;
    for (std::size_t i = 0; i < kind.points.size(); ++i)
      points.push_back({static_cast<int>(i), kind.points[i].time,
                        EffectiveEnergy(problem, kind, kind.points[i])});
    std::ranges::sort(points, {}, [](const EfficientPoint& point) {
      return std::tuple(point.time, point.effective);
    });
    EfficientPoints efficient;
    for (const EfficientPoint& point : points)
      if (efficient.empty() || point.effective < efficient.back().effective)
        efficient.push_back(point);
    all.push_back(std::move(efficient));
  }
  return all;
}

PointChooser::PointChooser(const Problem& problem, std::optional<Seconds> pace)
    : problem_(problem), pace_(pace), points_(FindEfficientPoints(problem)), slack_(problem) {}

const EfficientPoints& PointChooser::Points(int computation) const {
  return points_[At(problem_.computations[At(computation)].kind)];
}

PointChooser::Levels PointChooser::RoundDown(std::span<const Ticks> durations, Seconds tick) const {
  Levels levels;
  for (std::size_t i = 0; i < durations.size(); ++i) {
    const EfficientPoints& points = Points(static_cast<int>(i));
    // The relaxation was solved with times in whole ticks, so they are compared in ticks.
    const auto slower = std::ranges::find_if(points, [&](const EfficientPoint& point) {
      return std::llround(point.time / tick) > durations[i];
    });
    levels.push_back(std::max(static_cast<int>(slower - points.begin()) - 1, 0));
  }
  return levels;
}

void PointChooser::Reset(const Levels& levels, Seconds deadline) {
  std::vector<Seconds> durations;
  durations.reserve(levels.size());
  for (std::size_t i = 0; i < levels.size(); ++i)
    durations.push_back(Points(static_cast<int>(i))[At(levels[i])].time);
  slack_.Reset(durations, deadline);
}

Joules PointChooser::Energy(const Levels& levels) {
  Joules energy{};
  for (std::size_t i = 0; i < levels.size(); ++i)
    energy += Points(static_cast<int>(i))[At(levels[i])].effective;
  if (pace_) return energy;
  return energy + problem_.blocking_power * slack_.makespan() * double(problem_.stages);
}

void PointChooser::UseSlack(Levels& levels, Seconds deadline) {
  Reset(levels, deadline);
  std::priority_queue<std::pair<Joules, int>> moves;
  const auto offer = [&](int computation) {
    const EfficientPoints& points = Points(computation);
    const std::size_t level = At(levels[At(computation)]);
    if (level + 1 == points.size()) return;
    if (points[level + 1].time - points[level].time > slack_.Slack(computation)) return;
    moves.emplace(points[level].effective - points[level + 1].effective, computation);
  };
  const int computations = static_cast<int>(levels.size());
  for (int i = 0; i < computations; ++i) offer(i);
  while (!moves.empty()) {
    const int computation = moves.top().second;
    moves.pop();
    const EfficientPoints& points = Points(computation);
    int& level = levels[At(computation)];
    const Seconds longer = points[At(level + 1)].time - points[At(level)].time;
    if (longer > slack_.Slack(computation)) continue;
    ++level;
    slack_.Lengthen(computation, longer);
    offer(computation);
  }
}

void PointChooser::Exchange(Levels& levels, Seconds deadline) {
  Joules best = Energy(levels);
  Random random(1);
  const std::size_t tries = kExchangeVisits / levels.size();
  const std::size_t most_failures = 8 * levels.size();
  std::size_t failures = 0;  // Since the last exchange that saved energy.
  for (std::size_t tried = 0; tried < tries && failures < most_failures; ++tried, ++failures) {
    Levels changed = levels;
    for (std::uint64_t n = random.Below(kMostExchanged) + 1; n > 0; --n) {
      int& level = changed[random.Below(changed.size())];
      level = std::max(level - 1 - static_cast<int>(random.Below(kExchangeSteps)), 0);
    }
    UseSlack(changed, deadline);
    const Joules energy = Energy(changed);
    if (energy >= best) continue;
    best = energy;
    levels = std::move(changed);
    failures = 0;
  }
}

std::vector<int> PointChooser::Choose(std::span<const Ticks> durations, Seconds tick,
                                      Seconds deadline) {
  const Levels rounded = RoundDown(durations, tick);
  Reset(rounded, deadline);
  // A shorter iteration saves blocking power, which may be more than slower computations save: try
  // both the shortest time and the whole deadline.
  const Seconds shortest = std::min(slack_.makespan(), deadline);
  Levels best{};
  Joules least{};
  Seconds limit{};
  for (const Seconds within : {shortest, deadline}) {
    Levels levels = rounded;
    UseSlack(levels, within);
    const Joules energy = Energy(levels);
    if (!best.empty() && energy >= least) continue;
    best = std::move(levels);
    least = energy;
    limit = within;
  }
  UseSlack(best, limit);
  Exchange(best, limit);
  std::vector<int> choice;
  for (std::size_t i = 0; i < best.size(); ++i)
    choice.push_back(Points(static_cast<int>(i))[At(best[i])].index);
  return choice;
}

}  // namespace zeus::pipeline
