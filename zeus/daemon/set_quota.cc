#include "zeus/daemon/set_quota.h"

#include <algorithm>

namespace zeus::daemon {
namespace {

constexpr double kUsualRate = 10;
constexpr double kUsualClockRate = 200;
constexpr Seconds kBurst(2);  // So many seconds' worth of sets may be made at once.
constexpr Seconds kLongestWait(3600);

}  // namespace

double SetQuota::Used::By(TimePoint now) const {
  return std::max(0.0, sets - rate * (now - at).count());
}

std::optional<Seconds> SetQuota::WaitFor(const std::string& subject, const wire::KnobKey& knob,
                                         double rate, TimePoint now) const {
  const auto found = used_.find({subject, knob});
  const double used = found == used_.end() ? 0 : found->second.By(now);
  // A rate below one set in two seconds still allows a single one.
  const double over = used + 1 - std::max(1.0, rate * kBurst.count());
  // A little slack: sums of fractions must not cost the last set of a burst.
  if (rate > 0 && over <= 1e-9) return std::nullopt;
  return rate > 0 ? std::min(kLongestWait, Seconds(over / rate)) : kLongestWait;
}

void SetQuota::Take(const std::string& subject, const wire::KnobKey& knob, double rate,
                    TimePoint now) {
  Used& used = used_[{subject, knob}];
  used = {.sets = used.By(now) + 1, .rate = rate, .at = now};
}

void SetQuota::Forget(TimePoint now) {
  std::erase_if(used_, [now](const auto& entry) { return entry.second.By(now) <= 0; });
}

double SetsPerSecond(const Grant& grant, wire::LeaseKnob knob) {
  const auto found = grant.sets_per_second.find(knob);
  if (found != grant.sets_per_second.end()) return found->second;
  return IsClock(knob) ? kUsualClockRate : kUsualRate;
}

}  // namespace zeus::daemon
