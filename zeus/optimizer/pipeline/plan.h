#pragma once

#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/profile.h"

namespace zeus::pipeline {

// An instruction of a stage with its clock.
struct PlannedInstruction {
  std::string instruction{};
  int microbatch = 0;
  int chunk = 0;
  Hertz clock{};  // Zero: the clock stays as it is.
  // Predicted from the measured times and energies.
  Seconds start{0};
  Seconds time{0};
  Joules energy{};
};

// A clock for every instruction of every stage.
struct PipelinePlan {
  Seconds deadline{0};     // The deadline that was asked for.
  Seconds time{0};         // Time of an iteration; never above the deadline.
  Joules energy{};         // Energy from the start to `waits_until`, including blocking power.
  Seconds waits_until{0};  // A straggler's pace; `time` if there is no straggler.
  Joules bound{};          // No plan within the deadline takes less energy (linear relaxation with
                           // times rounded to microseconds).
  int clock_changes = 0;   // Changes per iteration of all stages together, in a steady state.
  std::vector<std::vector<PlannedInstruction>> stages{};

  // By how much the energy exceeds the bound, relative to it: 0.003 is 0.3 %.
  double gap() const { return energy / bound - 1; }
};

// The JSON of plans and profiles in files and on the wire (docs/formats.md).

Json ToJson(const PipelinePlan& plan);
Result<PipelinePlan> PlanFromJson(const Json& json);

Json ToJson(const PipelineProfile& profile);
Result<PipelineProfile> ProfileFromJson(const Json& json);

}  // namespace zeus::pipeline
