#pragma once

#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"

// Frequencies for the computations of pipeline-parallel training: docs/pipeline.md.
namespace zeus::pipeline {

// A computation as it was measured at one clock. Clocks are labels: nothing assumes that a higher
// one is faster.
struct OperatingPoint {
  Hertz clock{};  // Zero: whatever the clock is, for work that does not depend on it.
  Seconds time{0};
  Joules energy{};  // Of all GPUs of the stage together.
};

// What one instruction of one stage takes at every clock that was tried. With a single point it
// takes always the same.
struct InstructionProfile {
  int stage = 0;
  std::string instruction{};  // "forward", "backward", …: schedule.h.
  std::vector<OperatingPoint> points{};
};

// All that must be known about a pipeline to plan for it.
struct PipelineProfile {
  int stages = 0;
  Watts blocking_power{};  // Of a stage, all of its GPUs, while it waits for another one.
  std::vector<InstructionProfile> instructions{};

  // nullptr when it was not measured.
  const InstructionProfile* Find(int stage, std::string_view instruction) const;
};

// Whether the numbers can be true. The message says which one cannot.
Status Check(const OperatingPoint& point);

// Whether the numbers can be true: every time positive and finite, no negative energy, no clock
// twice for the same instruction, stages from 0 without a gap. The message names the row and the
// fix.
Status Check(const PipelineProfile& profile);

// Which of the profiled stages each of the wanted ones is like: spread evenly, with the first and
// the last; where there are more than were measured, those in between repeat, for they are the
// alike ones. Both at least 1.
std::vector<int> SpreadStages(int wanted, int profiled);

// A pipeline of these stages of the profile, each below its number of stages.
PipelineProfile WithStages(const PipelineProfile& profile, const std::vector<int>& stages);

}  // namespace zeus::pipeline
