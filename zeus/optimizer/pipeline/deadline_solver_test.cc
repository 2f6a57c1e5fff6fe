#include "zeus/optimizer/pipeline/deadline_solver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/optimizer/pipeline/frontier_solver.h"
#include "zeus/optimizer/pipeline/problem.h"
#include "zeus/optimizer/pipeline/testing/known_frontier.h"

namespace zeus::pipeline {
namespace deadline_solver_test {

using ::testing::HasSubstr;

struct Case {
  Problem problem{};
  CostTable costs{.tick = Seconds(1e-3), .slope_unit = 1e-9};
};

// Makes a problem in which computation i is of kind i.
Case MakeCase(std::vector<ConvexCost> costs, const std::vector<std::pair<int, int>>& edges) {
  Case made;
  const int size = static_cast<int>(costs.size());
  for (int i = 0; i < size; ++i) made.problem.computations.push_back({.kind = i});
  made.problem.stages = 2;
  made.problem.blocking_power = Watts(80);
  made.problem.kinds.resize(costs.size());
  made.problem.graph =
      ComputationGraph::Of(size, edges, [](int i) { return std::to_string(i); }).value();
  made.costs.costs = std::move(costs);
  return made;
}

// Makes a random problem in which about a quarter of the computations have a fixed duration.
Case RandomCase(std::mt19937& random, int size) {
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  std::vector<ConvexCost> costs;
  for (int i = 0; i < size; ++i) {
    ConvexCost cost{.times = {1 + below(20)}, .slopes = {0}, .at_longest = Joules(1 + below(9))};
    const int pieces = below(4);
    for (int piece = 0; piece < pieces; ++piece) {
      cost.times.push_back(cost.times.back() + 1 + below(5));
      cost.slopes.push_back(1 + below(1000));
    }
    std::sort(cost.slopes.begin() + 1, cost.slopes.end(), std::greater());
    costs.push_back(std::move(cost));
  }
  std::vector<std::pair<int, int>> edges;
  for (int to = 1; to < size; ++to) {
    for (int from = std::max(0, to - 6); from < to; ++from)
      if (below(3) == 0) edges.emplace_back(from, to);
  }
  return MakeCase(std::move(costs), edges);
}

void ExpectValid(const Case& given, const DeadlineSolution& solution) {
  const Problem& problem = given.problem;
  std::vector<Ticks> ends(problem.computations.size());
  Ticks last = 0;
  Joules energy = problem.blocking_power * (given.costs.tick * static_cast<double>(solution.time)) *
                  problem.stages;
  for (const int i : problem.graph.topological_order()) {
    const auto at = static_cast<std::size_t>(i);
    const int kind = problem.computations[at].kind;
    const ConvexCost& cost = given.costs.costs[static_cast<std::size_t>(kind)];
    Ticks begin = 0;
    for (const int before : problem.graph.Predecessors(i))
      begin = std::max(begin, ends[static_cast<std::size_t>(before)]);
    const Ticks duration = solution.durations[at];
    EXPECT_GE(duration, cost.shortest());
    EXPECT_LE(duration, cost.longest());
    ends[at] = begin + duration;
    last = std::max(last, ends[at]);
    energy += given.costs.At(kind, duration);
  }
  EXPECT_LE(last, solution.time);
  EXPECT_NEAR(energy / solution.energy, 1, 1e-12);
}

TEST(DeadlineSolverTest, EqualsTheFrontierAtEveryTimeOfRandomGraphs) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const Case given = RandomCase(random, 2 + round % 30);
    const auto frontier = SolveFrontier(given.problem, given.costs);
    ASSERT_TRUE(frontier.ok());
    for (Ticks time = frontier.value().fastest().ticks; time <= frontier.value().slowest().ticks;
         ++time) {
      const auto solution = SolveDeadline(given.problem, given.costs, time);
      ASSERT_TRUE(solution.ok()) << solution.error().message;
      EXPECT_EQ(solution.value().time, time);
      EXPECT_NEAR(solution.value().energy / frontier.value().EnergyAt(time), 1, 1e-9);
      ExpectValid(given, solution.value());
    }
  }
}

TEST(DeadlineSolverTest, TriesEveryDurationOfATinyGraph) {
  // The graph is a fork and a join: 0 -> {1, 2} -> 3.
  const ConvexCost curve{.times = {2, 4, 7}, .slopes = {0, 90, 20}, .at_longest = Joules(1)};
  const ConvexCost steep{.times = {1, 3, 5}, .slopes = {0, 300, 70}, .at_longest = Joules(2)};
  const Case given = MakeCase({curve, steep, curve, steep}, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  for (Ticks deadline = 5; deadline <= 19; ++deadline) {
    Joules least{1e9};
    for (Ticks a = 2; a <= 7; ++a)
      for (Ticks b = 1; b <= 5; ++b)
        for (Ticks c = 2; c <= 7; ++c)
          for (Ticks d = 1; d <= 5; ++d)
            if (a + std::max(b, c) + d <= deadline)
              least = std::min(least, given.costs.At(0, a) + given.costs.At(1, b) +
                                          given.costs.At(2, c) + given.costs.At(3, d));
    const auto solution = SolveDeadline(given.problem, given.costs, deadline);
    ASSERT_TRUE(solution.ok()) << solution.error().message;
    const Joules blocking =
        Watts(160) * (Seconds(1e-3) * static_cast<double>(solution.value().time));
    EXPECT_NEAR((solution.value().energy - blocking).value(), least.value(), 1e-12);
  }
}

TEST(DeadlineSolverTest, OneComputationTakesTheDeadline) {
  const Case given =
      MakeCase({{.times = {10, 20, 30}, .slopes = {0, 500, 100}, .at_longest = Joules(1)}}, {});
  const auto solution = SolveDeadline(given.problem, given.costs, 14);
  ASSERT_TRUE(solution.ok()) << solution.error().message;
  EXPECT_EQ(solution.value().durations, std::vector<Ticks>{14});
}

TEST(DeadlineSolverTest, WhatCannotBeChangedHasOneTime) {
  const ConvexCost fixed{.times = {5}, .slopes = {0}, .at_longest = Joules(3)};
  const Case given = MakeCase({fixed, fixed, fixed}, {{0, 1}, {1, 2}});
  for (const Ticks deadline : {15, 16, 1000}) {
    const auto solution = SolveDeadline(given.problem, given.costs, deadline);
    ASSERT_TRUE(solution.ok()) << solution.error().message;
    EXPECT_EQ(solution.value().time, 15);
  }
}

TEST(DeadlineSolverTest, MoreTimeThanNeededIsNotTaken) {
  const Case given =
      MakeCase({{.times = {10, 30}, .slopes = {0, 500}, .at_longest = Joules(1)}}, {});
  const auto solution = SolveDeadline(given.problem, given.costs, 99);
  ASSERT_TRUE(solution.ok());
  EXPECT_EQ(solution.value().time, 30);
  EXPECT_EQ(solution.value().durations, std::vector<Ticks>{30});
}

TEST(DeadlineSolverTest, ATooShortDeadlineIsAnsweredWithTheFastestTime) {
  const Case given =
      MakeCase({{.times = {1250, 1300}, .slopes = {0, 500}, .at_longest = Joules(1)}}, {});
  const auto solution = SolveDeadline(given.problem, given.costs, 1249);
  ASSERT_FALSE(solution.ok());
  EXPECT_EQ(solution.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(solution.error().message, HasSubstr("the fastest iteration takes 1.25 s"));
}

class KnownDeadlineTest : public ::testing::TestWithParam<CostKind> {};

TEST_P(KnownDeadlineTest, EqualsTheKnownFrontierOfRealPipelines) {
  constexpr int kMostComputations = 3000;
  const std::vector<std::string> names = InstanceNames();
  if (names.empty()) GTEST_SKIP() << "no instances in " << InstanceDirectory();
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const auto text = ReadSmallFile(InstanceDirectory() / "instances" / (name + ".json"), 1 << 24);
    const auto problem = ParseInstance(text.value());
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    if (problem.value().graph.size() > kMostComputations) continue;
    const auto costs = MakeCosts(problem.value(), GetParam());
    ASSERT_TRUE(costs.ok());
    const std::vector<KnownPoint> known = KnownFrontier(name, GetParam());
    ASSERT_FALSE(known.empty());
    const std::size_t step = std::max<std::size_t>(1, (known.size() - 1) / 5);
    for (std::size_t i = 0; i < known.size(); i += step) {
      const auto solution = SolveDeadline(problem.value(), costs.value(), known[i].ticks);
      ASSERT_TRUE(solution.ok()) << solution.error().message;
      const Seconds time = costs.value().tick * static_cast<double>(known[i].ticks);
      const Joules blocking =
          problem.value().blocking_power * time * static_cast<double>(problem.value().stages);
      EXPECT_NEAR((solution.value().energy - blocking) / known[i].effective_energy, 1, 1e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(BothModels, KnownDeadlineTest,
                         ::testing::Values(CostKind::kExponential, CostKind::kHull),
                         [](const auto& model) {
                           return model.param == CostKind::kHull ? std::string("Hull")
                                                                 : std::string("Exponential");
                         });

}  // namespace deadline_solver_test
}  // namespace zeus::pipeline
