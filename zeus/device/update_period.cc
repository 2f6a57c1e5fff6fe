#include "zeus/device/update_period.h"

#include <algorithm>
#include <cstddef>

namespace zeus {
namespace {

using namespace std::chrono_literals;

// Twenty polls per update of the fastest GPU counters (20 ms), at well under 1 % of a core.
constexpr Seconds kPollInterval = 1ms;

std::optional<double> ReadSensor(EnergyMeter& meter) {
  if (const auto energy = meter.Energy(); energy.ok()) return energy.value().total.value();
  if (const auto power = meter.Power(); power.ok()) return power.value().value();
  return std::nullopt;
}

}  // namespace

void UpdatePeriodEstimator::Add(TimePoint time, double value) {
  if (value_ && value != *value_) changes_.push_back({time, time - last_poll_});
  value_ = value;
  last_poll_ = time;
}

std::optional<UpdatePeriod> UpdatePeriodEstimator::Estimate() const {
  if (changes_.size() < 2) return std::nullopt;
  std::vector<Seconds> intervals;
  intervals.reserve(changes_.size() - 1);
  for (std::size_t i = 1; i < changes_.size(); ++i)
    intervals.push_back(changes_[i].seen - changes_[i - 1].seen);
  // The median survives updates that went unseen because the value did not change.
  const auto middle = intervals.begin() + static_cast<std::ptrdiff_t>(intervals.size() / 2);
  std::nth_element(intervals.begin(), middle, intervals.end());
  const auto latest = std::max_element(
      changes_.begin(), changes_.end(),
      [](const Change& a, const Change& b) { return a.uncertainty < b.uncertainty; });
  return UpdatePeriod{.period = *middle,
                      .error = latest->uncertainty,
                      .updates = static_cast<int>(changes_.size())};
}

std::vector<std::optional<UpdatePeriod>> MeasureUpdatePeriods(
    Clock& clock, const std::vector<EnergyMeter*>& meters, Seconds duration) {
  std::vector<UpdatePeriodEstimator> estimators(meters.size());
  const TimePoint end = clock.Now() + duration;
  for (TimePoint poll = clock.Now(); poll < end; poll = clock.Now()) {
    for (std::size_t i = 0; i < meters.size(); ++i) {
      const auto value = ReadSensor(*meters[i]);
      if (value) estimators[i].Add(clock.Now(), *value);
    }
    clock.SleepUntil(poll + kPollInterval);
  }
  std::vector<std::optional<UpdatePeriod>> periods;
  periods.reserve(estimators.size());
  for (const auto& estimator : estimators) periods.push_back(estimator.Estimate());
  return periods;
}

}  // namespace zeus
