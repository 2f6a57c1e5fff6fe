#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/daemon/grant.h"
#include "zeus/wire/node/lease.h"

namespace zeus::daemon {

// Limits how often a subject sets a knob: a rate, and twice as many at once. One owner.
class SetQuota {
 public:
  // nullopt when there is a set left, else how long until there is one. Takes nothing.
  std::optional<Seconds> WaitFor(const std::string& subject, const wire::KnobKey& knob, double rate,
                                 TimePoint now) const;
  void Take(const std::string& subject, const wire::KnobKey& knob, double rate, TimePoint now);
  // Forgets subjects that have not set anything for a while.
  void Forget(TimePoint now);
  std::size_t size() const { return used_.size(); }

 private:
  // The sets that were used up, at a moment; they come back at the rate.
  struct Used {
    double sets = 0;
    double rate = 0;
    TimePoint at{};

    double By(TimePoint now) const;
  };
  std::map<std::pair<std::string, wire::KnobKey>, Used> used_{};
};

// The sets per second that the grant allows on knobs of this kind.
double SetsPerSecond(const Grant& grant, wire::LeaseKnob knob);

}  // namespace zeus::daemon
