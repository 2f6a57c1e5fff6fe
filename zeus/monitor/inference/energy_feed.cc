#include "zeus/monitor/inference/energy_feed.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace zeus {
namespace {

// A sensor without update for longer than this is taken to be steady.
constexpr Seconds kLongestInterval{10};

}  // namespace

InferenceEnergyFeed::InferenceEnergyFeed(const EnergyMonitor& monitor,
                                         std::vector<std::size_t> devices,
                                         InferenceAttribution& attribution, Options options)
    : monitor_(monitor),
      devices_(std::move(devices)),
      attribution_(attribution),
      options_(options) {}

TimePoint InferenceEnergyFeed::SettledUntil() const {
  TimePoint until = TimePoint::max();
  for (const std::size_t device : devices_) until = std::min(until, monitor_.SettledUntil(device));
  return until;
}

bool InferenceEnergyFeed::GivenUp(TimePoint end, TimePoint now) const {
  if (end + options_.longest_delay <= now) return true;
  return end + options_.timeout <= now && std::ranges::any_of(devices_, [this](std::size_t device) {
           return !monitor_.Now(device).power.ok();
         });
}

std::optional<InferenceEnergyFeed::Energy> InferenceEnergyFeed::Between(TimePoint begin,
                                                                        TimePoint end) const {
  Energy sum;
  for (const std::size_t device : devices_) {
    const auto energy = monitor_.EnergyBetween(device, begin, end);
    if (!energy.ok()) return std::nullopt;
    sum.energy += energy.value().energy;
    sum.updates = std::min(sum.updates, energy.value().updates);
    // Gain and offset of a sensor are common to all intervals: they do not change the shares.
    sum.variance += std::max(0.0, std::pow(energy.value().sigma.value(), 2) -
                                      std::pow(energy.value().shared_sigma.value(), 2));
  }
  return sum;
}

void InferenceEnergyFeed::TellEnergy(TimePoint end, const Energy& energy) {
  const Joules rest = energy.energy + owed_;
  const Joules part = std::max(rest, Joules());
  owed_ = rest - part;
  total_ += part;
  known_until_ = end;
  attribution_.EnergyMeasured(end, part, Joules(std::sqrt(energy.variance)));
}

TimePoint InferenceEnergyFeed::Step(TimePoint now) {
  if (!told_until_) {
    // The recording must have begun by then, which is unknown before the first readings.
    if (Between(now, now)) {
      told_until_ = now;
      known_until_ = now;
      attribution_.EnergyMeasured(now, Joules(), Joules());
    }
    return now + options_.interval;
  }
  const TimePoint settled = SettledUntil();
  TimePoint end = *told_until_ + options_.interval;
  for (; end <= now; end += options_.interval) {
    const bool is_settled = end <= settled;
    if (!is_settled && !GivenUp(end, now)) break;
    const auto energy = is_settled ? Between(*told_until_, end) : std::nullopt;
    // Between two updates of a sensor the curve is a guess: such a stretch is told as a whole.
    if (energy && energy->updates == 0 && end - *told_until_ < kLongestInterval) continue;
    if (energy) {
      TellLateEnergy();
      TellEnergy(end, *energy);
    } else {
      const Joules unknown(std::numeric_limits<double>::quiet_NaN());
      attribution_.EnergyMeasured(end, unknown, unknown);
    }
    told_until_ = end;
  }
  return std::max(now + options_.interval / 4, end);
}

// Energy of intervals that were told as unknown, as far as it has become known since.
void InferenceEnergyFeed::TellLateEnergy() {
  if (known_until_ >= *told_until_) return;
  if (const auto late = Between(known_until_, *told_until_)) {
    attribution_.LateEnergyMeasured(late->energy);
    total_ += late->energy;
  }
}

}  // namespace zeus
