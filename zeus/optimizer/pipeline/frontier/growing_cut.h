#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/frontier.h"
#include "zeus/optimizer/pipeline/frontier/activity_network.h"

namespace zeus::pipeline {

// The future events of arcs, latest time first, since time falls. An arc has at most one event.
// Cancelling is lazy: an event is void when the stamp of its arc has moved on.
class EventQueue {
 public:
  struct Event {
    Ticks time = 0;
    std::int32_t arc = 0;
    std::uint32_t stamp = 0;
  };

  explicit EventQueue(std::size_t arcs) : stamps_(arcs, 0) {}

  bool Waits(int arc) const { return (stamps_[static_cast<std::size_t>(arc)] & 1) != 0; }

  // The arc must not have an event.
  void Schedule(int arc, Ticks time) {
    const std::uint32_t stamp = ++stamps_[static_cast<std::size_t>(arc)];
    heap_.push_back({time, arc, stamp});
    std::ranges::push_heap(heap_, {}, &Event::time);
  }

  void Cancel(int arc) { ++stamps_[static_cast<std::size_t>(arc)]; }

  // Returns the next event, which stays in the queue until it is cancelled; nullptr if there is
  // none.
  const Event* Next() {
    // Cancelled events are removed when they come up, or all at once when there are many.
    if (heap_.size() > 2 * stamps_.size()) {
      std::erase_if(heap_, [&](const Event& event) { return IsPast(event); });
      std::ranges::make_heap(heap_, {}, &Event::time);
    }
    while (!heap_.empty() && IsPast(heap_.front())) {
      std::ranges::pop_heap(heap_, {}, &Event::time);
      heap_.pop_back();
    }
    return heap_.empty() ? nullptr : &heap_.front();
  }

 private:
  bool IsPast(const Event& event) const {
    return stamps_[static_cast<std::size_t>(event.arc)] != event.stamp;
  }

  std::vector<Event> heap_{};          // A heap with the latest time at the front.
  std::vector<std::uint32_t> stamps_;  // One for each arc; odd while the arc has an event.
};

// The cut whose computations change while time falls. Inside are all nodes that the source reaches
// along tight arcs with capacity left. As time falls, the nodes outside move towards the source:
// computations that lead out of the cut shrink, those that lead back in grow. The inside only grows
// until the sink joins it, and every change of it is an event whose time is known beforehand.
class GrowingCut {
 public:
  // Both must outlive it.
  GrowingCut(ActivityNetwork& network, std::vector<DurationChange>& changes);

  Ticks time() const { return time_; }
  bool ReachesSink() const { return network_.node(network_.sink()).inside(); }

  // Returns the time of the next event, or `bound` if that is later (and so comes first).
  Ticks NextTime(Ticks bound);
  // Lets time fall to the next event, handles it and grows the cut. There must be an event.
  void PassEvent();
  // Lets time fall to `time`, which must not be beyond the next event.
  void FallTo(Ticks time) { time_ = time; }

  // Removes nodes that the source no longer reaches. First call Detach() for each of their ways to
  // other nodes, then Remove() for the nodes themselves, and WatchRemoved() after all of them: it
  // schedules the events that may bring them back.
  void Detach(int way, const NetworkNode& to) {
    if (to.inside()) {
      boundary_.push_back(way);
    } else if (events_.Waits(ArcNumber(way))) {
      BringUpToNow(ArcNumber(way));
    }
  }
  void Remove(NetworkNode& node) const {
    node.parent = kOutside;
    node.anchor -= time_;
  }
  void WatchRemoved();

  // Brings the durations of all computations that change up to the present time.
  void BringAllUpToNow();

 private:
  // Puts a node into the cut, reached by `way` from the node `from`.
  void Join(int node, int way, int from);
  // Inspects the ways of the nodes that have joined, until no more nodes join.
  void Grow();
  void Inspect(int way, int from, int to);
  void InspectForward(int way, int from, int to);
  void InspectBackward(int way, int from, int to);
  // Lets the duration of an activity change from now on, up to its next breakpoint.
  void Move(int activity, int direction);
  // Cancels the event of an arc; if its duration was changing, brings it up to the present time.
  void BringUpToNow(int arc);

  ActivityNetwork& network_;
  std::vector<DurationChange>& changes_;
  EventQueue events_;
  Ticks time_ = 0;
  std::vector<int> joined_{};    // Nodes inside whose ways were not inspected yet.
  std::vector<int> boundary_{};  // Ways from removed nodes to nodes that were still inside.
};

}  // namespace zeus::pipeline
