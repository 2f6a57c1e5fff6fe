#pragma once

#include <cmath>
#include <cstdint>

#include "zeus/base/units.h"

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

}  // namespace zeus
