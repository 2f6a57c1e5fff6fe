#include "zeus/base/stepped_clock.h"

#include <algorithm>
#include <utility>

namespace zeus {
namespace {

using namespace std::chrono_literals;

// A task that wants to be called at once is called again after this.
constexpr Seconds kShortestPause = 1us;

}  // namespace

void SteppedClock::Run(std::function<TimePoint()> step) {
  const TimePoint due = step();
  tasks_.push_back({.step = std::move(step), .due = std::max(due, Now() + kShortestPause)});
}

void SteppedClock::SleepUntil(TimePoint deadline) {
  while (!running_ && !tasks_.empty()) {
    Task& next = *std::ranges::min_element(tasks_, {}, &Task::due);
    if (next.due > deadline) break;
    clock_.SleepUntil(next.due);
    running_ = true;
    const TimePoint due = next.step();
    running_ = false;
    next.due = std::max(due, Now() + kShortestPause);
  }
  clock_.SleepUntil(deadline);
}

}  // namespace zeus
