#include "zeus/optimizer/power_limit/setting_record.h"

#include <cmath>

#include "zeus/base/statistics.h"

namespace zeus {

SliceReading operator+(const SliceReading& a, const SliceReading& b) {
  return {.time = a.time + b.time,
          .energy = a.energy + b.energy,
          .sigma = Joules(std::hypot(a.sigma.value(), b.sigma.value())),
          // The same sensors: their gain is off in the same direction.
          .shared_sigma = a.shared_sigma + b.shared_sigma,
          .final = a.final && b.final};
}

WeighedMean MeanOfSlices(const std::vector<WeighedMean>& values) {
  std::vector<double> plain;
  double variance = 0;
  for (const WeighedMean& one : values) {
    plain.push_back(one.value);
    variance += one.sigma * one.sigma;
  }
  const SampleSummary summary = Summarize(plain);
  const double own = std::sqrt(variance) / static_cast<double>(values.size());
  return {summary.mean, values.size() > 1 ? std::hypot(own, summary.StandardError()) : own};
}

void SettingRecord::BeginVisit() {
  times_before_ = times_;
  slices_before_ = slices_.size();
}

void SettingRecord::StartOver() {
  times_ = times_before_;
  slices_.erase(slices_.begin() + static_cast<std::ptrdiff_t>(slices_before_), slices_.end());
}

Result<SliceReading> SettingRecord::Read(SliceMeter& meter, const StepSource* source) {
  SliceReading sum;
  for (Slice& slice : slices_) {
    if (!slice.reading.final) {
      ZEUS_TRY(slice.reading, meter.Read(slice.ticket));
      if (source != nullptr) slice.rate = source->Between(slice.begin, slice.end);
    }
    sum = sum + slice.reading;
  }
  return sum;
}

std::optional<ProfilePoint> SettingRecord::ObservedPoint() const {
  std::vector<WeighedMean> times;
  std::vector<WeighedMean> energies;
  double steps = 0;
  for (const Slice& slice : slices_) {
    if (!slice.rate || !(slice.reading.time > Seconds(0))) continue;
    const StepRate& rate = *slice.rate;
    const Watts power = slice.reading.energy / slice.reading.time;
    const Watts power_sigma = slice.reading.sigma / slice.reading.time;
    times.push_back({rate.time_per_step.count(), rate.sigma.count()});
    energies.push_back(
        {(power * rate.time_per_step).value(),
         std::hypot((power_sigma * rate.time_per_step).value(), (power * rate.sigma).value())});
    steps += rate.steps;
  }
  if (times.empty()) return std::nullopt;
  const WeighedMean time = MeanOfSlices(times);
  const WeighedMean energy = MeanOfSlices(energies);
  return ProfilePoint{.setting = setting_,
                      .steps = static_cast<std::int64_t>(std::llround(steps)),
                      .time_per_step = Seconds(time.value),
                      .time_sigma = Seconds(time.sigma),
                      .energy_per_step = Joules(energy.value),
                      .energy_sigma = Joules(energy.sigma)};
}

}  // namespace zeus
