#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/optimizer/power_limit/profile.h"
#include "zeus/optimizer/power_limit/slice_meter.h"
#include "zeus/optimizer/power_limit/step_source.h"

namespace zeus {

// How long the steps of a slice took. Welford's sums: exact for any number of steps.
class StepTimes {
 public:
  void Add(Seconds step) {
    ++count_;
    const Seconds delta = step - mean_;
    mean_ += delta / static_cast<double>(count_);
    squares_ += delta.count() * (step - mean_).count();
  }

  std::int64_t count() const { return count_; }
  Seconds mean() const { return mean_; }
  // Sum of the squared deviations from the mean, relative to the mean.
  double RelativeSquares() const {
    return mean_ > Seconds(0) ? squares_ / (mean_.count() * mean_.count()) : 0.0;
  }
  // One standard deviation of the mean, relative to it. Infinite for fewer than two steps.
  double RelativeError() const {
    const auto n = static_cast<double>(count_);
    return count_ < 2 ? INFINITY : std::sqrt(RelativeSquares() / (n - 1) / n);
  }

 private:
  std::int64_t count_ = 0;
  Seconds mean_{0};
  double squares_ = 0;
};

// Everything that was measured at one setting. A setting is visited once per round; a visit is one
// slice, or several where epochs ended in between. One owner.
class SettingRecord {
 public:
  struct Slice {
    SliceMeter::Ticket ticket{};
    std::size_t number = 0;  // In the order of time, over all settings.
    unsigned round = 0;
    TimePoint begin{};
    TimePoint end{};
    SliceReading reading{.final = false};
    std::optional<StepRate> rate{};  // Only for jobs that are observed from outside.
  };

  explicit SettingRecord(const Setting& setting) : setting_(setting) {}

  const Setting& setting() const { return setting_; }
  std::int64_t steps() const { return times_.count(); }
  const StepTimes& times() const { return times_; }
  const std::vector<Slice>& slices() const { return slices_; }

  void BeginVisit();
  void AddStep(Seconds time) { times_.Add(time); }
  void AddSlice(const Slice& slice) { slices_.push_back(slice); }
  // Forgets the present visit.
  void StartOver();

  // Returns the sum of all slices, as well as known by now. With a source, the rates of the slices
  // are brought up to date as well: the last line of a slice may arrive after its end.
  Result<SliceReading> Read(SliceMeter& meter, const StepSource* source = nullptr);

  // Returns the mean time and energy of a step, from the slices whose rate is known, with the
  // scatter between them. nullopt if there is none.
  std::optional<ProfilePoint> ObservedPoint() const;

 private:
  Setting setting_;
  StepTimes times_;
  std::vector<Slice> slices_;
  StepTimes times_before_;         // Before the present visit.
  std::size_t slices_before_ = 0;  // Also before the present visit.
};

// The sum of two stretches of training that were measured one after the other.
SliceReading operator+(const SliceReading& a, const SliceReading& b);

// The mean of values with a sigma each. Its sigma has both theirs and the scatter between them.
struct WeighedMean {
  double value = 0;
  double sigma = 0;
};
WeighedMean MeanOfSlices(const std::vector<WeighedMean>& values);

}  // namespace zeus
