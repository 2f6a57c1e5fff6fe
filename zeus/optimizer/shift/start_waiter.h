#pragma once

#include <optional>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/shift/start_planner.h"

namespace zeus {

// Waits for the start of a run while forecasts come, change and fail to come. Every new plan
// counts. Without one the last plan stands until its start; without any the run starts at once. One
// owner.
class StartWaiter {
 public:
  // Forecasts change about as often; asking more often costs nothing but requests.
  static constexpr Seconds kReplanPeriod = std::chrono::minutes(15);

  // Returns when to decide again, or nullopt when the run is to start now. Nobody waits behind the
  // latest start that the last plan allowed, whatever the clock does.
  std::optional<WallTime> Decide(WallTime now, const Result<StartPlan>& plan) {
    if (plan.ok()) last_ = plan.value();
    if (!last_) return std::nullopt;
    const WallTime start = std::min(last_->start, last_->latest);
    if (start <= now) return std::nullopt;
    return std::min(start, Later(now, kReplanPeriod));
  }

  // The plan that holds; nullopt before the first one.
  const std::optional<StartPlan>& plan() const { return last_; }

 private:
  std::optional<StartPlan> last_;
};

}  // namespace zeus
