#include "zeus/optimizer/pipeline/frontier/growing_cut.h"

#include <algorithm>

namespace zeus::pipeline {

GrowingCut::GrowingCut(ActivityNetwork& network, std::vector<DurationChange>& changes)
    : network_(network), changes_(changes), events_(network.arcs.size()), time_(network.longest) {
  for (NetworkNode& node : network_.nodes) node.anchor -= time_;
  Join(network_.source(), kRoot, network_.source());
  Grow();
}

Ticks GrowingCut::NextTime(Ticks bound) {
  const EventQueue::Event* const next = events_.Next();
  return next == nullptr ? bound : std::max(bound, next->time);
}

void GrowingCut::PassEvent() {
  const EventQueue::Event event = *events_.Next();
  time_ = event.time;
  BringUpToNow(event.arc);
  const NetworkArc& arc = network_.arc(event.arc);
  const int way = 2 * event.arc + (network_.node(arc.ends[0]).inside() ? 0 : 1);
  Inspect(way, arc.From(way), arc.To(way));
  Grow();
}

void GrowingCut::Join(int node, int way, int from) {
  NetworkNode& joining = network_.node(node);
  joining.anchor += time_;
  joining.Hang(way, from);
  joined_.push_back(node);
  network_.Prefetch(node);
}

void GrowingCut::Grow() {
  for (std::size_t i = 0; i < joined_.size(); ++i) {
    const int from = joined_[i];
    for (const auto [way, neighbour] : network_.Incidences(from)) {
      // Only arcs across the edge of the cut have events. This one crossed it until `from` joined.
      if (!network_.node(neighbour).inside()) {
        Inspect(way, from, neighbour);
      } else if (events_.Waits(ArcNumber(way))) {
        BringUpToNow(ArcNumber(way));
      }
    }
  }
  joined_.clear();
}

// Inspects a way that leads out of the cut: lets its end join, or schedules the event at which that
// may change.
void GrowingCut::Inspect(int way, int from, int to) {
  if ((way & 1) == 0) {
    InspectForward(way, from, to);
  } else {
    InspectBackward(way, from, to);
  }
}

void GrowingCut::InspectForward(int way, int from, int to) {
  const Ticks gap = network_.node(to).anchor + time_ - network_.node(from).anchor;
  // An arc that is no activity has neither a duration nor a limit.
  const bool waits = !network_.IsActivity(ArcNumber(way));
  const Ticks slack = waits ? gap : gap - network_.arc(ArcNumber(way)).duration;
  if (slack > 0) {
    events_.Schedule(ArcNumber(way), time_ - slack);
  } else if (waits || network_.arc(ArcNumber(way)).residual[0] > 0) {
    Join(to, way, from);
  } else {
    Move(ArcNumber(way), -1);
  }
}

void GrowingCut::InspectBackward(int way, int from, int to) {
  const Ticks gap = network_.node(from).anchor - network_.node(to).anchor - time_;
  const bool waits = !network_.IsActivity(ArcNumber(way));
  // An arc that leads back in and is not tight gains slack as time falls, so it has no event.
  if (waits && gap > 0) return;
  const NetworkArc& arc = network_.arc(ArcNumber(way));
  if (gap > arc.duration) return;
  if (arc.residual[1] > 0) {
    Join(to, way, from);
  } else if (!waits && network_.activities[static_cast<std::size_t>(ArcNumber(way))].lower > 0) {
    Move(ArcNumber(way), 1);
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

void GrowingCut::BringUpToNow(int arc) {
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

void GrowingCut::BringAllUpToNow() {
  for (int arc = 0; arc < static_cast<int>(network_.activities.size()); ++arc)
    if (events_.Waits(arc)) BringUpToNow(arc);
}

void GrowingCut::WatchRemoved() {
  for (const int way : boundary_) {
    const NetworkArc& arc = network_.arc(ArcNumber(way));
    if (network_.node(arc.To(way)).inside()) Inspect(Opposite(way), arc.To(way), arc.From(way));
  }
  boundary_.clear();
}

}  // namespace zeus::pipeline
