#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "zeus/optimizer/pipeline/convex_cost.h"

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

}  // namespace zeus::pipeline
