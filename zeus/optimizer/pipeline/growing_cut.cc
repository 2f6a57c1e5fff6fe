#include "zeus/optimizer/pipeline/growing_cut.h"

#include <algorithm>

namespace zeus::pipeline {

GrowingCut::GrowingCut(ActivityNetwork& network, std::vector<DurationChange>& changes)
    : network_(network), changes_(changes), events_(network.arcs.size()), time_(network.longest) {
  for (NetworkNode& node : network_.nodes) node.anchor -= time_;
  Join(network_.source(), kRoot);
  Grow();
}

Ticks GrowingCut::NextTime(Ticks bound) {
  const EventQueue::Event* const next = events_.Next();
  return next == nullptr ? bound : std::max(bound, next->time);
}

void GrowingCut::PassEvent() {
  const EventQueue::Event event = *events_.Next();
  time_ = event.time;
  Settle(event.arc);
  const NetworkArc& arc = network_.arc(event.arc);
  const int way = 2 * event.arc + (network_.node(arc.ends[0]).inside() ? 0 : 1);
  Look(way, arc.From(way), arc.To(way));
  Grow();
}

void GrowingCut::Join(int node, int way) {
  NetworkNode& joining = network_.node(node);
  joining.anchor += time_;
  joining.parent = way;
  joined_.push_back(node);
}

void GrowingCut::Grow() {
  for (std::size_t i = 0; i < joined_.size(); ++i) {
    const int from = joined_[i];
    for (const auto [way, neighbour] : network_.Incidences(from)) {
      if (events_.Waits(ArcOf(way))) Settle(ArcOf(way));
      if (!network_.node(neighbour).inside()) Look(way, from, neighbour);
    }
  }
  joined_.clear();
}

// Along a way that leads out: joins what is there, or waits for what will happen.
void GrowingCut::Look(int way, int from, int to) {
  if ((way & 1) == 0) {
    LookAhead(way, from, to);
  } else {
    LookBack(way, from, to);
  }
}

void GrowingCut::LookAhead(int way, int from, int to) {
  const NetworkArc& arc = network_.arc(ArcOf(way));
  const Ticks slack = network_.node(to).anchor + time_ - network_.node(from).anchor - arc.duration;
  if (slack > 0) {
    events_.Schedule(ArcOf(way), time_ - slack);
  } else if (arc.residual[0] > 0) {
    Join(to, way);
  } else {
    Move(ArcOf(way), -1);
  }
}

void GrowingCut::LookBack(int way, int from, int to) {
  const NetworkArc& arc = network_.arc(ArcOf(way));
  // An arc that leads back in and is not tight gets more slack as time falls.
  if (network_.node(from).anchor - network_.node(to).anchor - time_ > arc.duration) return;
  if (arc.residual[1] > 0) {
    Join(to, way);
  } else if (network_.IsActivity(ArcOf(way)) &&
             network_.activities[static_cast<std::size_t>(ArcOf(way))].lower > 0) {
    Move(ArcOf(way), 1);
  }
}

void GrowingCut::Move(int activity, int direction) {
  Activity& state = network_.activities[static_cast<std::size_t>(activity)];
  const Ticks duration = network_.arc(activity).duration;
  const auto k = static_cast<std::size_t>(state.breakpoint);
  const std::vector<Ticks>& times = state.cost->times;
  Ticks target = times[k];
  if (direction > 0) {
    target = times[k + 1];
  } else if (target == duration) {
    target = times[k - 1];
  }
  state.direction = direction;
  state.since = time_;
  events_.Schedule(activity, time_ - direction * (target - duration));
}

void GrowingCut::Settle(int arc) {
  events_.Cancel(arc);
  if (!network_.IsActivity(arc)) return;
  Activity& state = network_.activities[static_cast<std::size_t>(arc)];
  if (state.direction == 0) return;
  if (state.since != time_) {
    Ticks& duration = network_.arc(arc).duration;
    duration += state.direction * (state.since - time_);
    const std::vector<Ticks>& times = state.cost->times;
    auto k = static_cast<std::size_t>(state.breakpoint);
    while (k > 0 && times[k] > duration) --k;
    while (k + 1 < times.size() && times[k + 1] <= duration) ++k;
    state.breakpoint = static_cast<std::int32_t>(k);
    changes_.push_back({state.since, time_, state.computation, state.direction});
    network_.SetBounds(arc);
  }
  state.direction = 0;
}

void GrowingCut::SettleAll() {
  for (int arc = 0; arc < static_cast<int>(network_.activities.size()); ++arc)
    if (events_.Waits(arc)) Settle(arc);
}

void GrowingCut::Remove(int node) {
  for (const Incidence& incidence : network_.Incidences(node))
    if (events_.Waits(ArcOf(incidence.way))) Settle(ArcOf(incidence.way));
  NetworkNode& leaving = network_.node(node);
  leaving.parent = kOutside;
  leaving.anchor -= time_;
  removed_.push_back(node);
}

void GrowingCut::WatchRemoved() {
  for (const int to : removed_)
    for (const auto [way, neighbour] : network_.Incidences(to))
      if (network_.node(neighbour).inside()) Look(Opposite(way), neighbour, to);
  removed_.clear();
}

}  // namespace zeus::pipeline
