#include "zeus/monitor/inference/energy_feed.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace zeus {
namespace {

// A curve is refined for up to three updates of its sensor.
constexpr double kSettlingUpdates = 3.5;
constexpr Seconds kShortestFeedLag{0.05};
constexpr Seconds kCorrected{3};  // Corrections of a curve reach back no further.

}  // namespace

InferenceEnergyFeed::InferenceEnergyFeed(const EnergyMonitor& monitor,
                                         std::vector<std::size_t> devices,
                                         InferenceAttribution& attribution, Options options)
    : monitor_(monitor),
      devices_(std::move(devices)),
      attribution_(attribution),
      options_(options) {}

Seconds InferenceEnergyFeed::Lag() const {
  Seconds longest{0};
  for (const std::size_t device : devices_)
    longest = std::max(longest, monitor_.Now(device).update_period);
  return std::max(kShortestFeedLag, longest * kSettlingUpdates);
}

std::optional<InferenceEnergyFeed::Energy> InferenceEnergyFeed::Between(TimePoint begin,
                                                                        TimePoint end) const {
  Energy sum;
  for (const std::size_t device : devices_) {
    const auto energy = monitor_.EnergyBetween(device, begin, end);
    if (!energy.ok()) return std::nullopt;
    sum.energy += energy.value().energy;
    // Gain and offset of a sensor are common to all intervals: they do not change the shares.
    sum.variance += std::max(0.0, std::pow(energy.value().sigma.value(), 2) -
                                      std::pow(energy.value().shared_sigma.value(), 2));
  }
  return sum;
}

TimePoint InferenceEnergyFeed::Step(TimePoint now) {
  const Seconds lag = Lag();
  if (!told_until_) {
    // The recording must have begun by then, which is unknown before the first readings.
    if (Between(now, now)) {
      told_until_ = now;
      told_.push_back({now, Joules(0)});
      attribution_.EnergyMeasured(now, Joules(0), Joules(0));
    }
    return now + options_.interval;
  }
  while (*told_until_ + options_.interval + lag <= now) {
    const TimePoint end = *told_until_ + options_.interval;
    while (told_.size() > 1 && told_.front().until + kCorrected < end) told_.pop_front();
    const auto energy = Between(*told_until_, end);
    const auto since = Between(told_.front().until, end);
    if (energy && since) {
      const Joules rest = since->energy - (told_.back().sum - told_.front().sum);
      const Joules part = std::max(rest, Joules(0));
      attribution_.EnergyMeasured(end, part, Joules(std::sqrt(energy->variance)));
      told_.push_back({end, told_.back().sum + part});
      total_ += part;
    } else if (end + options_.timeout <= now) {
      const Joules unknown(std::numeric_limits<double>::quiet_NaN());
      attribution_.EnergyMeasured(end, unknown, unknown);
      told_.assign(1, {end, Joules(0)});
    } else {
      return now + options_.interval;
    }
    told_until_ = end;
  }
  return *told_until_ + options_.interval + lag;
}

}  // namespace zeus
