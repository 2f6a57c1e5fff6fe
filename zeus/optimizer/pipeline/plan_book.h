#pragma once

#include <vector>

#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/planner.h"

namespace zeus::pipeline {

// Plans for many paces, made beforehand: finds the one for a straggler in O(log plans).
class PlanBook {
 public:
  // `plans` deadlines, spread evenly from the fastest time to the frontier's slowest point; the
  // baseline's time is one of them.
  static Result<PlanBook> Make(const Planner& planner, int plans = 32,
                               const ClockChangeRules& rules = {});

  // The slowest plan that is not slower than the pace; the fastest where all are.
  const PipelinePlan& ForPace(Seconds pace) const;
  const std::vector<PipelinePlan>& plans() const { return plans_; }  // Fastest first.

 private:
  std::vector<PipelinePlan> plans_;
};

}  // namespace zeus::pipeline
