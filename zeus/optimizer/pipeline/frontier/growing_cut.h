#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/frontier.h"
#include "zeus/optimizer/pipeline/frontier/activity_network.h"

namespace zeus::pipeline {

// Arcs that something happens to at a time which is still ahead; time falls. An arc waits for at
// most one event.
class EventQueue {
 public:
  struct Event {
    Ticks time = 0;
    std::int32_t arc = 0;
    std::uint32_t stamp = 0;
  };

  explicit EventQueue(std::size_t arcs) : stamps_(arcs, 0) {}

  bool Waits(int arc) const { return (stamps_[static_cast<std::size_t>(arc)] & 1) != 0; }

  // The arc must not wait for another event.
  void Schedule(int arc, Ticks time) {
    const std::uint32_t stamp = ++stamps_[static_cast<std::size_t>(arc)];
    heap_.push_back({time, arc, stamp});
    std::ranges::push_heap(heap_, {}, &Event::time);
  }

  void Cancel(int arc) { ++stamps_[static_cast<std::size_t>(arc)]; }

  // The next event, which stays until it is cancelled; nullptr when there is none.
  const Event* Next() {
    // Cancelled events are thrown away when they come up, or all at once when they are many.
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

  std::vector<Event> heap_{};          // The latest time first.
  std::vector<std::uint32_t> stamps_;  // Of each arc; odd while it waits.
};

// The cut whose computations change while time falls: inside is all that the source reaches along
// tight arcs that are not full. Nodes outside move towards the source with time; computations that
// lead out shrink, those that lead back in grow again. What is inside only grows until the sink
// joins, and each change of it is an event that is known beforehand.
class GrowingCut {
 public:
  // Both must outlive it.
  GrowingCut(ActivityNetwork& network, std::vector<DurationChange>& changes);

  Ticks time() const { return time_; }
  bool ReachesSink() const { return network_.node(network_.sink()).inside(); }

  // The time of the next event, or `bound` if that is later.
  Ticks NextTime(Ticks bound);
  // Lets time fall to the next event, which must not be before it, and grows.
  void PassEvent();
  // Lets time fall to one that is not beyond the next event.
  void FallTo(Ticks time) { time_ = time; }

  // Takes nodes out that the source no longer reaches: first each of their ways to other nodes,
  // then the nodes themselves; when all have gone, waits for what will bring them back.
  void Part(int way, const NetworkNode& to) {
    if (to.inside()) {
      edge_.push_back(way);
    } else if (events_.Waits(ArcOf(way))) {
      Settle(ArcOf(way));
    }
  }
  void Remove(NetworkNode& node) const {
    node.parent = kOutside;
    node.anchor -= time_;
  }
  void WatchRemoved();

  // Brings the durations of all that moves up to the present.
  void SettleAll();

 private:
  void Join(int node, int way, int from);
  void Grow();
  void Look(int way, int from, int to);
  void LookAhead(int way, int from, int to);
  void LookBack(int way, int from, int to);
  void Move(int activity, int direction);
  void Settle(int arc);

  ActivityNetwork& network_;
  std::vector<DurationChange>& changes_;
  EventQueue events_;
  Ticks time_ = 0;
  std::vector<int> joined_{};  // Not looked around from yet.
  std::vector<int> edge_{};    // Ways from removed nodes to what was still inside.
};

}  // namespace zeus::pipeline
