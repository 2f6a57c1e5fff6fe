#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/problem.h"
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

struct RandomProblem {
  Problem problem{};
  CostTable costs{};
};

// Makes a convex curve of up to five segments, or in one of four cases a single duration. Slopes
// are often equal, so that many cuts are equally good.
inline ConvexCost RandomCost(std::mt19937_64& random) {
  const auto pick = [&](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  const int segments = pick(0, 3) == 0 ? 0 : pick(1, 5);
  ConvexCost cost{.times = {pick(0, 5)}, .slopes = {0}, .at_longest = Joules(pick(1, 9))};
  for (int i = 0; i < segments; ++i) {
    cost.times.push_back(cost.times.back() + pick(1, 4));
    cost.slopes.push_back(pick(1, 12));
  }
  std::sort(cost.slopes.begin() + 1, cost.slopes.end(), std::greater<>());
  return cost;
}

// Makes up to `most` computations in an acyclic graph of any shape.
inline RandomProblem MakeRandomProblem(std::uint64_t seed, int most) {
  std::mt19937_64 random(seed);
  const auto pick = [&](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  RandomProblem made;
  made.problem = {.name = "random", .stages = 2, .microbatches = 1, .blocking_power = Watts(3)};
  made.costs = {.tick = Seconds(0.01), .slope_unit = 0.001};
  const int computations = pick(1, most);
  const int density = pick(1, 60);
  std::vector<std::pair<int, int>> edges;
  for (int i = 0; i < computations; ++i) {
    made.problem.computations.push_back({.stage = 0, .microbatch = i, .kind = i});
    made.problem.kinds.push_back({.instruction = "forward"});
    made.costs.costs.push_back(RandomCost(random));
    for (int next = i + 1; next < computations; ++next)
      if (pick(0, 99) < density) edges.emplace_back(i, next);
  }
  made.problem.graph =
      ComputationGraph::Of(computations, edges, [](int i) { return std::to_string(i); }).value();
  return made;
}

}  // namespace zeus::pipeline
