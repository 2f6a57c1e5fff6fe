#pragma once

#include <string>
#include <vector>

#include "zeus/plan/plan_service.h"

namespace zeus::testing {

// Two stages of which the second takes longer, so that the first one can save energy.
inline PlanSpec APlanSpec(const std::string& id) {
  const auto points = [](double time) {
    return std::vector<pipeline::OperatingPoint>{
        {.clock = Hertz::FromMega(1410), .time = Seconds(time), .energy = Joules(300 * time)},
        {.clock = Hertz::FromMega(1200), .time = Seconds(time * 1.1), .energy = Joules(250 * time)},
        {.clock = Hertz::FromMega(1005),
         .time = Seconds(time * 1.3),
         .energy = Joules(227 * time)}};
  };
  PlanSpec spec{
      .id = id, .profile = {.stages = 2, .blocking_power = Watts(83.64)}, .microbatches = 4};
  for (const int stage : {0, 1}) {
    const double time = stage == 0 ? 0.1 : 0.13;
    spec.profile.instructions.push_back(
        {.stage = stage, .instruction = "forward", .points = points(time)});
    spec.profile.instructions.push_back(
        {.stage = stage, .instruction = "backward", .points = points(2 * time)});
  }
  return spec;
}

}  // namespace zeus::testing
