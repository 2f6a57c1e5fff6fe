#include "zeus/optimizer/pipeline/stage_clocks.h"

#include <fmt/format.h>

#include "zeus/base/text.h"

namespace zeus::pipeline {

Result<Hertz> StageClocks::Begin(std::string_view instruction) {
  if (position_ == plan_.size())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("instruction {} of an iteration is {}, but the plan has only {}: plan "
                             "for the schedule that the program follows",
                             position_ + 1, Quote(instruction), plan_.size())};
  const PlannedInstruction& planned = plan_[position_];
  if (planned.instruction != instruction)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("instruction {} of an iteration is {}, but the plan has {}: plan for "
                             "the schedule that the program follows",
                             position_ + 1, Quote(instruction), Quote(planned.instruction))};
  ++position_;
  planned_time_ += planned.time;
  return planned.clock;
}

Hertz StageClocks::Next() const {
  if (plan_.empty()) return Hertz(0);
  return plan_[position_ == plan_.size() ? 0 : position_].clock;
}

Status StageClocks::EndIteration() {
  const std::size_t done = position_;
  position_ = 0;
  planned_time_ = Seconds(0);
  if (done == plan_.size()) return Ok();
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("an iteration ended after {} of the plan's {} instructions: plan for the "
                  "schedule that the program follows",
                  done, plan_.size())};
}

}  // namespace zeus::pipeline
