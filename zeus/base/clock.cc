#include "zeus/base/clock.h"

#include <algorithm>
#include <thread>

namespace zeus {
namespace {

// A virtual run starts at a fixed time of day, so that its records are the same on every run.
constexpr WallTime kVirtualEpoch =
    std::chrono::sys_days(std::chrono::year(2023) / std::chrono::April / 17);

}  // namespace

TimePoint SystemClock::Now() const { return std::chrono::steady_clock::now(); }

WallTime SystemClock::WallNow() const {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

void SystemClock::SleepUntil(TimePoint deadline) { std::this_thread::sleep_until(deadline); }

WallTime VirtualClock::WallNow() const {
  return kVirtualEpoch +
         std::chrono::duration_cast<std::chrono::microseconds>(now_.time_since_epoch());
}

void VirtualClock::SleepUntil(TimePoint deadline) { now_ = std::max(now_, deadline); }

}  // namespace zeus
