#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"

namespace zeus::cli {

// Decides when GPUs are as cool as they were before the first run, or cannot get any cooler: a warm
// chip leaks more current, so a run that starts warm uses more energy. One owner.
class Cooldown {
 public:
  // `start` are the temperatures before the first run.
  explicit Cooldown(std::vector<Celsius> start);

  // Temperatures in the same order. True when the next run may begin: each is at most kTolerance
  // above its start, or none has changed by more than kSteady during the last kSteadyTime.
  // Without any temperature there is nothing to wait for.
  bool MayBegin(TimePoint now, const std::vector<Celsius>& temperatures);

  static constexpr Celsius kTolerance{1.5};
  static constexpr Celsius kSteady{1.0};  // Sensors show whole degrees.
  static constexpr Seconds kSteadyTime{20};

 private:
  bool BackAtStart(const std::vector<Celsius>& temperatures) const;
  bool Steady() const;

  std::vector<Celsius> start_;
  std::deque<std::pair<TimePoint, std::vector<Celsius>>> recent_;
};

}  // namespace zeus::cli
