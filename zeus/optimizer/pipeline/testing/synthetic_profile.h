#pragma once

#include "zeus/optimizer/pipeline/profile.h"

namespace zeus::pipeline {

// Makes a profile by the law of a processor: t = a + b / f, P = s + c f^3. Later stages take
// longer, so that the earlier ones have slack. Clocks go from 600 to 1400 MHz in steps of 100.
inline PipelineProfile SyntheticProfile(int stages, double imbalance = 0.1) {
  PipelineProfile profile{.stages = stages, .blocking_power = Watts(80)};
  for (int stage = 0; stage < stages; ++stage) {
    for (const auto& [name, work] : {std::pair("forward", 0.03), std::pair("backward", 0.06)}) {
      InstructionProfile instruction{.stage = stage, .instruction = name};
      for (double ghz = 1.4; ghz > 0.55; ghz -= 0.1) {
        const Seconds time(work * (1 + imbalance * stage) * (0.2 + 1.12 / ghz));
        const Watts power(90 + 80 * ghz * ghz * ghz);
        instruction.points.push_back(
            {Hertz::FromMega(static_cast<double>(static_cast<int>(ghz * 1e3 + 0.5))), time,
             power * time});
      }
      profile.instructions.push_back(instruction);
    }
  }
  return profile;
}

}  // namespace zeus::pipeline
