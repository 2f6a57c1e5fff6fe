#include "zeus/job/lease_clock.h"

#include <algorithm>
#include <chrono>

namespace zeus {
namespace {

using std::chrono::microseconds;

constexpr microseconds kSameTime = std::chrono::seconds(1);

microseconds Rounded(Seconds time) { return std::chrono::duration_cast<microseconds>(time); }

// Returns the time since a tick was kept. The time of day is used only after a restart of the
// machine or on another machine, where there is no common monotonic clock.
microseconds Elapsed(const LeaseTick& kept, WallTime wall, const BootTime& boot) {
  const bool same_boot = !boot.boot.empty() && boot.boot == kept.boot.boot;
  const microseconds elapsed = same_boot ? Rounded(boot.since - kept.boot.since) : wall - kept.wall;
  return std::max(elapsed, microseconds(0));
}

}  // namespace

void LeaseClock::Begin(const std::optional<LeaseTick>& kept) {
  const std::lock_guard lock(mutex_);
  if (begun_) return;
  begun_ = true;
  start_ = clock_.Now();
  lease_ = clock_.WallNow();
  if (!kept) return;
  lease_ = kept->lease;
  if (absence_ == Absence::kCounted) lease_ += Elapsed(*kept, clock_.WallNow(), boot_clock_());
}

bool LeaseClock::has_begun() const {
  const std::lock_guard lock(mutex_);
  return begun_;
}

WallTime LeaseClock::NowLocked() const { return lease_ + Rounded(clock_.Now() - start_); }

WallTime LeaseClock::Now() const {
  const std::lock_guard lock(mutex_);
  return NowLocked();
}

void LeaseClock::CatchUp(const LeaseTick& kept) {
  const std::lock_guard lock(mutex_);
  const WallTime now = NowLocked();
  if (kept.lease > now) lease_ += kept.lease - now;
}

std::optional<LeaseTick> LeaseClock::TickEvery(Seconds period) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  if (kept_at_ && now - *kept_at_ < period) return std::nullopt;
  kept_at_ = now;
  return LeaseTick{.lease = NowLocked(), .wall = clock_.WallNow(), .boot = boot_clock_()};
}

WallTime LeaseClock::TimeOfDay(WallTime lease) const {
  const std::lock_guard lock(mutex_);
  const microseconds apart = clock_.WallNow() - NowLocked();
  return std::chrono::abs(apart) < kSameTime ? lease : lease + apart;
}

}  // namespace zeus
