#pragma once

#include <cmath>

#include "zeus/base/units.h"

namespace zeus::sim {

// A sum of many energies that keeps what rounding would lose (Neumaier), so that a week of a
// million small additions is as exact as one.
class EnergySum {
 public:
  void Add(Joules energy) {
    const double value = energy.value();
    const double sum = sum_ + value;
    lost_ += std::abs(sum_) >= std::abs(value) ? (sum_ - sum) + value : (value - sum) + sum_;
    sum_ = sum;
  }

  Joules Total() const { return Joules(sum_ + lost_); }

 private:
  double sum_ = 0.0;
  double lost_ = 0.0;
};

}  // namespace zeus::sim
