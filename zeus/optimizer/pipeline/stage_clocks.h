#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/plan.h"

namespace zeus::pipeline {

// Follows the instructions of one stage through its plan, iteration by iteration. It sets no clocks
// itself. One owner.
class StageClocks {
 public:
  explicit StageClocks(std::vector<PlannedInstruction> plan) : plan_(std::move(plan)) {}

  // Returns the clock for the instruction that begins; zero: unchanged. Returns kInvalidArgument
  // when the plan has another instruction here, or none: the program does not follow the schedule
  // that was planned for.
  Result<Hertz> Begin(std::string_view instruction);

  // Returns the clock of the instruction that will begin next, in this iteration or the next one.
  Hertz Next() const;

  // Ends the iteration and goes back to the first instruction. Returns kInvalidArgument when
  // instructions of the plan were missing.
  Status EndIteration();

  // Planned time of the instructions that have begun in this iteration, all together.
  Seconds planned_time() const { return planned_time_; }

 private:
  std::vector<PlannedInstruction> plan_;
  std::size_t position_ = 0;
  Seconds planned_time_{0};
};

}  // namespace zeus::pipeline
