#include "zeus/base/clock.h"

#include <time.h>

#include <algorithm>
#include <string>
#include <thread>

#include "zeus/base/file.h"
#include "zeus/base/process.h"

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

BootTime CurrentBootTime() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  // It stays the same as long as this process lives.
  static const auto boot = ReadLine("/proc/sys/kernel/random/boot_id");
  return {
      .boot = boot.ok() ? boot.value() : "",
      .since = Seconds(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec))};
}

}  // namespace zeus
