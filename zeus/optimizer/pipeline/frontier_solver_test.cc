#include "zeus/optimizer/pipeline/frontier_solver.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "zeus/base/file.h"
#include "zeus/optimizer/pipeline/deadline_solver.h"
#include "zeus/optimizer/pipeline/problem.h"
#include "zeus/optimizer/pipeline/testing/frontier_program.h"
#include "zeus/optimizer/pipeline/testing/known_frontier.h"
#include "zeus/optimizer/pipeline/testing/random_problem.h"
#include "zeus/optimizer/pipeline/testing/sweep_invariants.h"

namespace zeus::pipeline {
namespace frontier_solver_test {

constexpr int kProblems = 200;

Frontier Solve(const RandomProblem& random, const SolveOptions& options = {}) {
  return SolveFrontier(random.problem, random.costs, options).value();
}

// Returns the time at which the last computation ends.
Ticks LongestPath(const ComputationGraph& graph, const std::vector<Ticks>& durations) {
  std::vector<Ticks> ends(durations.size(), 0);
  for (const int i : graph.topological_order()) {
    Ticks begin = 0;
    for (const int before : graph.Predecessors(i))
      begin = std::max(begin, ends[static_cast<std::size_t>(before)]);
    ends[static_cast<std::size_t>(i)] = begin + durations[static_cast<std::size_t>(i)];
  }
  return std::ranges::max(ends);
}

std::vector<Ticks> EndDurations(const RandomProblem& random, bool longest) {
  std::vector<Ticks> durations;
  for (const ConvexCost& cost : random.costs.costs)
    durations.push_back(longest ? cost.longest() : cost.shortest());
  return durations;
}

Joules ComputeEnergy(const RandomProblem& random, const std::vector<Ticks>& durations, Ticks time) {
  Joules energy = random.problem.blocking_power * random.problem.stages *
                  (random.costs.tick * static_cast<double>(time));
  for (std::size_t i = 0; i < durations.size(); ++i)
    energy += random.costs.At(static_cast<int>(i), durations[i]);
  return energy;
}

void ExpectClose(Joules actual, Joules expected, double relative) {
  EXPECT_NEAR(actual.value(), expected.value(), relative * std::abs(expected.value()));
}

TEST(FrontierSweepTest, EveryStepIsAnOptimum) {
  for (int seed = 0; seed < kProblems; ++seed) {
    SCOPED_TRACE(seed);
    const RandomProblem random = MakeRandomProblem(static_cast<std::uint64_t>(seed), 25);
    FrontierSweep sweep(random.problem, random.costs);
    Slope marginal = 0;
    Ticks time = sweep.time();
    while (sweep.Step(-1)) {
      SweepInvariants(sweep).Check();
      EXPECT_GE(sweep.marginal_cost(), marginal);
      EXPECT_LE(sweep.time(), time);
      marginal = sweep.marginal_cost();
      time = sweep.time();
      ASSERT_FALSE(::testing::Test::HasFailure());
    }
    EXPECT_EQ(sweep.time(), LongestPath(random.problem.graph, EndDurations(random, false)));
  }
}

TEST(FrontierSolverTest, EndsWhereAllAreLongestAndWhereAllAreShortest) {
  for (int seed = 0; seed < kProblems; ++seed) {
    const RandomProblem random = MakeRandomProblem(static_cast<std::uint64_t>(seed), 40);
    const Frontier frontier = Solve(random);
    EXPECT_EQ(frontier.slowest().ticks,
              LongestPath(random.problem.graph, EndDurations(random, true)));
    EXPECT_EQ(frontier.fastest().ticks,
              LongestPath(random.problem.graph, EndDurations(random, false)));
    ExpectClose(frontier.slowest().energy,
                ComputeEnergy(random, EndDurations(random, true), frontier.slowest().ticks), 1e-12);
  }
}

TEST(FrontierSolverTest, PointsFallStrictlyAndAreConvex) {
  for (int seed = 0; seed < kProblems; ++seed) {
    const RandomProblem random = MakeRandomProblem(static_cast<std::uint64_t>(seed), 40);
    const Frontier frontier = Solve(random);
    const std::vector<FrontierPoint>& points = frontier.points();
    double slope = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 1; i < points.size(); ++i) {
      ASSERT_LT(points[i].ticks, points[i - 1].ticks);
      const double next = (points[i].energy - points[i - 1].energy).value() /
                          static_cast<double>(points[i - 1].ticks - points[i].ticks);
      EXPECT_GT(next, slope);
      slope = next;
    }
  }
}

TEST(FrontierSolverTest, DurationsAtAnyTimeMeetItAndHaveItsEnergy) {
  for (int seed = 0; seed < kProblems; ++seed) {
    SCOPED_TRACE(seed);
    const RandomProblem random = MakeRandomProblem(static_cast<std::uint64_t>(seed), 30);
    const Frontier frontier = Solve(random);
    for (Ticks time = frontier.fastest().ticks; time <= frontier.slowest().ticks; ++time) {
      const std::vector<Ticks> durations = frontier.DurationsAt(time);
      EXPECT_LE(LongestPath(random.problem.graph, durations), time);
      ExpectClose(ComputeEnergy(random, durations, time), frontier.EnergyAt(time), 1e-9);
    }
  }
}

TEST(FrontierSolverTest, AgreesWithALinearProgram) {
  if (!HasLinearPrograms()) GTEST_SKIP() << "built without GLPK: install libglpk-dev";
  for (int seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const RandomProblem random = MakeRandomProblem(static_cast<std::uint64_t>(seed), 20);
    const Frontier frontier = Solve(random);
    const Ticks range = frontier.slowest().ticks - frontier.fastest().ticks;
    for (const Ticks share : {0, 1, 3, 5, 8, 10}) {
      const Ticks time = frontier.fastest().ticks + range * share / 10;
      const std::optional<Joules> least = LeastEffectiveEnergy(random, time);
      ASSERT_TRUE(least);
      const Joules blocking = ComputeEnergy(random, {}, time);
      ExpectClose(frontier.EnergyAt(time), *least + blocking, 1e-6);
    }
    EXPECT_FALSE(LeastEffectiveEnergy(random, frontier.fastest().ticks - 1));
  }
}

TEST(DeadlineSolverTest, AgreesWithALinearProgramOnAnyGraph) {
  if (!HasLinearPrograms()) GTEST_SKIP() << "built without GLPK: install libglpk-dev";
  for (int seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const RandomProblem random = MakeRandomProblem(static_cast<std::uint64_t>(seed), 20);
    const Ticks fastest = LongestPath(random.problem.graph, EndDurations(random, false));
    const Ticks slowest = LongestPath(random.problem.graph, EndDurations(random, true));
    for (const Ticks time : {fastest, (fastest + slowest) / 2, slowest}) {
      const auto solution = SolveDeadline(random.problem, random.costs, time);
      ASSERT_TRUE(solution.ok()) << solution.error().message;
      const Joules blocking = ComputeEnergy(random, {}, solution.value().time);
      ExpectClose(solution.value().energy, *LeastEffectiveEnergy(random, time) + blocking, 1e-6);
    }
  }
}

TEST(FrontierSolverTest, StopsAtTheTimeThatIsAskedFor) {
  const RandomProblem random = MakeRandomProblem(7, 40);
  const Frontier whole = Solve(random);
  const Ticks middle = (whole.slowest().ticks + whole.fastest().ticks) / 2;
  const Frontier part = Solve(random, {.until = random.costs.tick * static_cast<double>(middle)});
  EXPECT_EQ(part.fastest().ticks, middle);
  ExpectClose(part.fastest().energy, whole.EnergyAt(middle), 1e-12);
  EXPECT_EQ(part.DurationsAt(middle), whole.DurationsAt(middle));
  EXPECT_EQ(Solve(random, {.until = Seconds(1e6)}).points().size(), 1u);
  EXPECT_EQ(Solve(random, {.until = Seconds(0)}).fastest().ticks, whole.fastest().ticks);
}

TEST(FrontierSolverTest, TellsHowFarItIsAndCanBeCancelled) {
  const RandomProblem random = MakeRandomProblem(7, 40);
  std::vector<double> shares;
  Solve(random, {.progress = [&](double share) {
          shares.push_back(share);
          return true;
        }});
  ASSERT_GE(shares.size(), 2u);
  EXPECT_TRUE(std::ranges::is_sorted(shares));
  EXPECT_LE(shares.size(), 102u);
  EXPECT_GE(shares.front(), 0);
  EXPECT_DOUBLE_EQ(shares.back(), 1);

  const auto cancelled =
      SolveFrontier(random.problem, random.costs, {.progress = [](double) { return false; }});
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.error().code, ErrorCode::kUnavailable);
}

TEST(FrontierSolverTest, IsDeterministic) {
  const RandomProblem random = MakeRandomProblem(11, 40);
  const Frontier one = Solve(random);
  const Frontier other = Solve(random);
  ASSERT_EQ(one.points().size(), other.points().size());
  for (const FrontierPoint& point : one.points()) {
    EXPECT_EQ(one.EnergyAt(point.ticks), other.EnergyAt(point.ticks));
    EXPECT_EQ(one.DurationsAt(point.ticks), other.DurationsAt(point.ticks));
  }
}

TEST(FrontierSolverTest, APipelineThatCannotChangeHasOnePoint) {
  RandomProblem random = MakeRandomProblem(3, 12);
  for (ConvexCost& cost : random.costs.costs)
    cost = {.times = {4}, .slopes = {0}, .at_longest = Joules(2)};
  const Frontier frontier = Solve(random);
  ASSERT_EQ(frontier.points().size(), 1u);
  EXPECT_EQ(frontier.slowest().ticks, frontier.fastest().ticks);
  EXPECT_EQ(frontier.DurationsAt(frontier.fastest().ticks), EndDurations(random, true));
}

TEST(FrontierTest, TimesThatCameFromTicksAreThoseTicks) {
  for (Ticks ticks = 1; ticks < 100'000; ticks += 7)
    EXPECT_EQ(WholeTicks(Seconds(1e-3) * static_cast<double>(ticks), Seconds(1e-3)), ticks);
  EXPECT_EQ(WholeTicks(Seconds(0.0029), Seconds(1e-3)), 2);
  EXPECT_EQ(WholeTicks(Seconds(-1), Seconds(1e-3)), 0);
}

TEST(FrontierTest, EnergyIsLinearBetweenPoints) {
  const Frontier frontier({.tick = Seconds(1),
                           .points = {{10, Seconds(10), Joules(100)},
                                      {6, Seconds(6), Joules(108)},
                                      {5, Seconds(5), Joules(120)}},
                           .slowest_durations = {10},
                           .changes = {{10, 7, 0, -1}, {7, 5, 0, -1}}});
  EXPECT_EQ(frontier.EnergyAt(10), Joules(100));
  EXPECT_EQ(frontier.EnergyAt(8), Joules(104));
  EXPECT_EQ(frontier.EnergyAt(6), Joules(108));
  EXPECT_EQ(frontier.EnergyAt(5), Joules(120));
  EXPECT_EQ(frontier.TicksWithin(Seconds(7.9)), 7);
  EXPECT_EQ(frontier.TicksWithin(Seconds(1e9)), 10);
  EXPECT_EQ(frontier.DurationsAt(8), std::vector<Ticks>{8});
  EXPECT_EQ(frontier.DurationsAt(5), std::vector<Ticks>{5});
}

// Compares the solved frontiers of real pipelines with those that are known exactly.

// Larger problems take too long in a unit test; bench/pipeline compares the largest one.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
constexpr int kMostComputations = 600;
#else
constexpr int kMostComputations = 10'000;
#endif

class KnownFrontiersTest : public ::testing::TestWithParam<CostKind> {};

void ExpectKnown(const std::string& name, CostKind kind) {
  SCOPED_TRACE(name);
  const auto text = ReadSmallFile(InstanceDirectory() / "instances" / (name + ".json"), 1 << 24);
  ASSERT_TRUE(text.ok());
  const auto problem = ParseInstance(text.value());
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  if (problem.value().graph.size() > kMostComputations) {
    std::cout << name << " is left to bench/pipeline: too large for a test\n";
    return;
  }
  const auto costs = MakeCosts(problem.value(), kind);
  ASSERT_TRUE(costs.ok()) << costs.error().message;
  const auto frontier = SolveFrontier(problem.value(), costs.value());
  ASSERT_TRUE(frontier.ok()) << frontier.error().message;

  const std::vector<KnownPoint> known = KnownFrontier(name, kind);
  ASSERT_FALSE(known.empty());
  EXPECT_EQ(frontier.value().slowest().ticks, known.front().ticks);
  EXPECT_EQ(frontier.value().fastest().ticks, known.back().ticks);
  const Watts blocking = problem.value().blocking_power * problem.value().stages;
  double worst = 0;
  for (const KnownPoint& point : known) {
    const Seconds time = costs.value().tick * static_cast<double>(point.ticks);
    const Joules ours = frontier.value().EnergyAt(point.ticks) - blocking * time;
    worst = std::max(worst, std::abs(ours / point.effective_energy - 1));
  }
  EXPECT_LT(worst, 1e-6);
}

TEST_P(KnownFrontiersTest, AreFoundAtEveryPointAndBothEnds) {
  const std::vector<std::string> names = InstanceNames();
  if (names.empty()) GTEST_SKIP() << "no instances in " << InstanceDirectory();
  for (const std::string& name : names) ExpectKnown(name, GetParam());
}

INSTANTIATE_TEST_SUITE_P(BothModels, KnownFrontiersTest,
                         ::testing::Values(CostKind::kExponential, CostKind::kHull),
                         [](const auto& model) {
                           return model.param == CostKind::kHull ? std::string("Hull")
                                                                 : std::string("Exponential");
                         });

}  // namespace frontier_solver_test
}  // namespace zeus::pipeline
