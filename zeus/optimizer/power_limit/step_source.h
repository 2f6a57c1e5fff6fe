#pragma once

#include <cstddef>
#include <optional>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"

namespace zeus {

// How fast a job made its steps during a stretch of time.
struct StepRate {
  double steps;  // In the whole stretch. Fractional, because its edges lie between steps.
  Seconds time_per_step;
  Seconds sigma;              // One standard deviation of the time per step.
  std::size_t intervals = 0;  // Number of observations that the rate follows from.
};

// The steps of a job that is observed from outside, as a command that prints its progress. One
// owner.
class StepSource {
 public:
  virtual ~StepSource() = default;

  // Whether the job has made a first step: jobs take a while to start.
  virtual bool Begun() const = 0;
  // Returns nullopt if too little was observed in the stretch.
  virtual std::optional<StepRate> Between(TimePoint begin, TimePoint end) const = 0;
  // Frees the memory of older observations: stretches that begin earlier are not asked for again.
  virtual void ForgetBefore(TimePoint when) = 0;
};

// For jobs whose progress is unknown: only their power can be measured.
class UnknownSteps final : public StepSource {
 public:
  bool Begun() const override { return true; }
  std::optional<StepRate> Between(TimePoint /*begin*/, TimePoint /*end*/) const override {
    return std::nullopt;
  }
  void ForgetBefore(TimePoint /*when*/) override {}
};

}  // namespace zeus
