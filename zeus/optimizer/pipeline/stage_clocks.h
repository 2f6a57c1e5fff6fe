#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/plan.h"

namespace zeus::pipeline {

// Follows the instructions of one stage through its plan, iteration by iteration. Pure. One owner.
class StageClocks {
 public:
  explicit StageClocks(std::vector<PlannedInstruction> plan) : plan_(std::move(plan)) {}

  // The clock for the instruction that begins; zero: leave it. kInvalidArgument when the plan has
  // another one here, or none: the program does not follow the schedule that was planned for.
  Result<Hertz> Begin(std::string_view instruction);

  // The clock of the instruction that will begin next, in this iteration or the one after it.
  Hertz Next() const;

  // The iteration is over: back to the first instruction. kInvalidArgument when some are missing.
  Status EndIteration();

  // What the instructions take together that have begun in this iteration, by the plan.
  Seconds planned_time() const { return planned_time_; }

 private:
  std::vector<PlannedInstruction> plan_;
  std::size_t position_ = 0;
  Seconds planned_time_{0};
};

}  // namespace zeus::pipeline
