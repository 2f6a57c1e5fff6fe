#pragma once

#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"

// Measured times and energies of the computations of pipeline-parallel training (docs/pipeline.md).
namespace zeus::pipeline {

// The measurement of a computation at one clock. Clocks are only labels: nothing assumes that a
// higher one is faster.
struct OperatingPoint {
  Hertz clock{};  // Zero for work that does not depend on the clock.
  Seconds time{0};
  Joules energy{};  // Energy of all GPUs of the stage together.
};

// Time and energy of one instruction of one stage at every clock that was measured. An instruction
// with a single point does not depend on the clock.
struct InstructionProfile {
  int stage = 0;
  std::string instruction{};  // "forward", "backward", …; see schedule.h.
  std::vector<OperatingPoint> points{};
};

// The measurements that are needed to plan for a pipeline.
struct PipelineProfile {
  int stages = 0;
  Watts blocking_power{};  // Power of a stage (all its GPUs) while it waits for another stage.
  std::vector<InstructionProfile> instructions{};

  // Returns nullptr when the instruction was not measured.
  const InstructionProfile* Find(int stage, std::string_view instruction) const;
};

// Checks that time and energy are plausible. The message names the one that is not.
Status Check(const OperatingPoint& point);

// Checks the whole profile: every time positive and finite, no negative energy, no clock twice for
// the same instruction, stages from 0 without a gap. The message names the row and the fix.
Status Check(const PipelineProfile& profile);

// Returns for each of the wanted stages the profiled stage that stands for it. They are spread
// evenly, with the first and the last. If more are wanted than were profiled, the inner stages
// repeat, because they resemble each other. Both numbers are at least 1.
std::vector<int> SpreadStages(int wanted, int profiled);

// Returns the profile of a pipeline that consists of these stages of `profile`.
PipelineProfile WithStages(const PipelineProfile& profile, const std::vector<int>& stages);

}  // namespace zeus::pipeline
