#pragma once

#include <string>
#include <vector>

#include "zeus/base/units.h"

namespace zeus::pipeline {

struct PlannedInstruction {
  std::string instruction{};
  int microbatch = 0;
  int chunk = 0;
  Hertz clock{};  // Zero: leave it as it is.
  // As planned, in true times.
  Seconds start{0};
  Seconds time{0};
  Joules energy{};
};

// A clock for every instruction of every stage.
struct PipelinePlan {
  Seconds deadline{0};     // What was asked for.
  Seconds time{0};         // Of an iteration; never above the deadline.
  Joules energy{};         // Of an iteration and of waiting until `waits_until`, blocking included.
  Seconds waits_until{0};  // A straggler's pace; `time` where there is none.
  Joules bound{};          // No plan within the deadline takes less (linear relaxation, with
                           // times to a microsecond).
  int clock_changes = 0;   // In all stages together, in a steady run of iterations.
  std::vector<std::vector<PlannedInstruction>> stages{};

  // How much more than the bound it takes: 0.003 is 0.3 %.
  double gap() const { return energy / bound - 1; }
};

}  // namespace zeus::pipeline
