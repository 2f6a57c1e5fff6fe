#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/monitor/inference/attribution.h"

namespace zeus {

// Tells an InferenceAttribution what a group of recorded GPUs took, interval after interval.
//
// An interval is told once the recording of all the GPUs is settled there: some updates of the
// slowest sensor after its end, when the curves change no more; it holds at least one update of
// each sensor. A recorder that was not run for seconds only delays it. Intervals are consecutive,
// so their sum is exactly the energy of the group over the whole time. It has no thread: the caller
// calls Step() after the monitor's own steps. One owner; monitor and attribution must outlive it.
class InferenceEnergyFeed {
 public:
  struct Options {
    Seconds interval{0.1};
    // An interval that a device which does not answer hides for this long is told as unknown, so
    // that requests become final without it.
    Seconds timeout{5};
    // The same for a device that has not been read, though nothing is known to be wrong with it.
    Seconds longest_delay{30};
  };

  // `devices` are those of the monitor that form the group, counted as there.
  InferenceEnergyFeed(const EnergyMonitor& monitor, std::vector<std::size_t> devices,
                      InferenceAttribution& attribution, Options options);
  InferenceEnergyFeed(const EnergyMonitor& monitor, std::vector<std::size_t> devices,
                      InferenceAttribution& attribution)
      : InferenceEnergyFeed(monitor, std::move(devices), attribution, Options()) {}

  // Tells all intervals that are settled at `now`. Returns the moment of the next one.
  TimePoint Step(TimePoint now);

  // The end of the last interval that was told; nullopt before the first.
  std::optional<TimePoint> told_until() const { return told_until_; }
  // The energy of all intervals that were told.
  Joules told() const { return total_; }

 private:
  struct Energy {
    Joules energy{};
    double variance = 0;
    int updates = std::numeric_limits<int>::max();  // The slowest sensor made so many.
  };
  std::optional<Energy> Between(TimePoint begin, TimePoint end) const;
  // The moment up to which the recordings of all devices are settled.
  TimePoint SettledUntil() const;
  // Whether the interval up to `end` will not be waited for any longer.
  bool GivenUp(TimePoint end, TimePoint now) const;
  void TellEnergy(TimePoint end, const Energy& energy);
  void TellLateEnergy();

  const EnergyMonitor& monitor_;
  std::vector<std::size_t> devices_;
  InferenceAttribution& attribution_;
  Options options_;
  std::optional<TimePoint> told_until_;
  TimePoint known_until_{};  // Later intervals were told as unknown.
  Joules owed_{};  // Negative: the curve fell by this much, which later intervals make up.
  Joules total_{};
};

}  // namespace zeus
