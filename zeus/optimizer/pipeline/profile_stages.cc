#include "zeus/optimizer/pipeline/profile_stages.h"

#include <cmath>
#include <cstddef>

namespace zeus::pipeline {

std::vector<int> SpreadStages(int wanted, int profiled) {
  std::vector<int> stages;
  for (int i = 0; i < wanted; ++i) {
    if (wanted <= profiled)
      stages.push_back(wanted == 1 ? 0
                                   : static_cast<int>(std::lround(static_cast<double>(i) *
                                                                  (profiled - 1) / (wanted - 1))));
    else if (i == 0 || i == wanted - 1 || profiled < 3)
      stages.push_back(i == wanted - 1 ? profiled - 1 : 0);
    else
      stages.push_back(1 + (i - 1) % (profiled - 2));
  }
  return stages;
}

PipelineProfile WithStages(const PipelineProfile& profile, const std::vector<int>& stages) {
  PipelineProfile chosen{.stages = static_cast<int>(stages.size()),
                         .blocking_power = profile.blocking_power};
  for (std::size_t i = 0; i < stages.size(); ++i) {
    for (const InstructionProfile& instruction : profile.instructions) {
      if (instruction.stage != stages[i]) continue;
      chosen.instructions.push_back(instruction);
      chosen.instructions.back().stage = static_cast<int>(i);
    }
  }
  return chosen;
}

}  // namespace zeus::pipeline
