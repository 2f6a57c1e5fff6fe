#include "zeus/optimizer/pipeline/planner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/base/random.h"
#include "zeus/optimizer/pipeline/problem.h"
#include "zeus/optimizer/pipeline/testing/known_frontier.h"
#include "zeus/optimizer/pipeline/testing/random_problem.h"

namespace zeus::pipeline {
namespace planner_test {

using ::testing::HasSubstr;

// Relative error of times that are rounded to whole microseconds.
constexpr double kRounding = 2e-5;
// Greatest gap of plans with few computations when clocks come in steps of 100 MHz.
constexpr double kCoarse = 0.015;

Problem Synthetic(int stages, int microbatches, std::string_view schedule = "1f1b") {
  const auto made = MakeSchedule(schedule, {.stages = stages, .microbatches = microbatches});
  return MakeProblem(SyntheticProfile(stages), made.value()).value();
}

std::unique_ptr<Planner> MakePlanner(Problem problem) {
  auto planner = Planner::Make(std::move(problem));
  EXPECT_TRUE(planner.ok()) << planner.error().message;
  return std::move(planner).value();
}

// Returns the clocks of a stage in its order.
std::vector<double> ListClocks(const PipelinePlan& plan, std::size_t stage) {
  std::vector<double> clocks;
  for (const PlannedInstruction& instruction : plan.stages[stage])
    clocks.push_back(instruction.clock.ToMega());
  return clocks;
}

TEST(PlannerTest, SavesEnergyWithoutTakingLonger) {
  const auto planner = MakePlanner(Synthetic(4, 8));
  const auto plan = planner->Plan(planner->baseline().time);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_LE(plan.value().time, planner->baseline().time + Seconds(1e-9));
  EXPECT_GT(Saving(plan.value(), planner->baseline(), planner->problem()), 0.03);
  EXPECT_GE(plan.value().gap(), -kRounding);
  EXPECT_LT(plan.value().gap(), kCoarse);
}

TEST(PlannerTest, ItsTimesAndEnergiesAreThoseOfItsInstructions) {
  const auto planner = MakePlanner(Synthetic(3, 5));
  const PipelinePlan plan = planner->Plan(planner->baseline().time * 1.03).value();
  Seconds end{0};
  Joules energy{};
  Seconds busy{0};
  for (const auto& stage : plan.stages) {
    Seconds free_from{0};
    for (const PlannedInstruction& instruction : stage) {
      EXPECT_GE(instruction.start, free_from - Seconds(1e-12));
      free_from = instruction.start + instruction.time;
      end = std::max(end, free_from);
      energy += instruction.energy;
      busy += instruction.time;
    }
  }
  EXPECT_DOUBLE_EQ(end.count(), plan.time.count());
  const Seconds idle = 3 * plan.time - busy;
  EXPECT_NEAR((energy + Watts(80) * idle).value(), plan.energy.value(), 1e-9);
}

// Finds the best choice by trying all of them.
Joules BestOfAll(const Problem& problem, Seconds deadline) {
  std::vector<int> choice(problem.computations.size(), 0);
  Joules best(std::numeric_limits<double>::infinity());
  for (;;) {
    const Evaluation evaluation = Evaluate(problem, choice);
    if (evaluation.time <= deadline + Seconds(1e-9)) best = std::min(best, evaluation.energy);
    std::size_t at = 0;
    const auto points = [&](std::size_t i) {
      return static_cast<int>(problem.Kind(static_cast<int>(i)).points.size());
    };
    while (at < choice.size() && ++choice[at] == points(at)) choice[at++] = 0;
    if (at == choice.size()) return best;
  }
}

TEST(PlannerTest, IsNearTheBestOfAllChoices) {
  Random random(7);
  for (int round = 0; round < 20; ++round) {
    PipelineProfile profile = SyntheticProfile(2, random.Uniform(0, 0.5));
    for (InstructionProfile& instruction : profile.instructions) {
      auto& points = instruction.points;
      points = {points[random.Below(3)], points[3 + random.Below(3)], points[6 + random.Below(3)]};
    }
    const auto schedule = MakeSchedule("1f1b", {.stages = 2, .microbatches = 2});
    const auto planner = MakePlanner(MakeProblem(profile, schedule.value()).value());
    for (const double slack : {1.0, 1.05, 1.2}) {
      const Seconds deadline = planner->baseline().time * slack;
      const PipelinePlan plan = planner->Plan(deadline).value();
      const Joules best = BestOfAll(planner->problem(), deadline);
      EXPECT_LE(plan.bound, best * (1 + kRounding));
      EXPECT_GE(plan.energy, best * (1 - 1e-9));
      EXPECT_LE(plan.energy, best * 1.02) << "round " << round << ", slack " << slack;
    }
  }
}

TEST(PlannerTest, NamesTheFastestTimeWhenADeadlineIsTooShort) {
  const auto planner = MakePlanner(Synthetic(2, 4));
  const auto plan = planner->Plan(planner->fastest_time() * 0.9);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(plan.error().message, HasSubstr(fmt::format("the fastest iteration takes {:.6g} s",
                                                          planner->fastest_time().count())));
  EXPECT_TRUE(planner->Plan(planner->fastest_time()).ok());
  EXPECT_FALSE(planner->Plan(Seconds(std::numeric_limits<double>::quiet_NaN())).ok());
}

TEST(PlannerTest, NobodyIsSlowerThanPaysOff) {
  const auto planner = MakePlanner(Synthetic(3, 4));
  const PipelinePlan plan = planner->Plan(Seconds(3600)).value();
  const auto& points = planner->frontier().points();
  const auto least = std::ranges::min_element(points, {}, &FrontierPoint::energy);
  EXPECT_NEAR(plan.bound.value(), least->energy.value(), 1e-9);
  EXPECT_LT(plan.gap(), 0.005);
}

TEST(PlannerTest, WithAStragglerWaitingCostsTheSameAndEverybodySlowsDown) {
  const auto planner = MakePlanner(Synthetic(4, 8));
  const Seconds pace = planner->baseline().time * 1.3;
  const PipelinePlan plan = planner->PlanForPace(pace).value();
  EXPECT_LE(plan.time, pace);
  EXPECT_EQ(plan.waits_until, pace);
  const PipelinePlan alone = planner->Plan(planner->baseline().time).value();
  EXPECT_GT(Saving(plan, planner->baseline(), planner->problem()),
            Saving(alone, planner->baseline(), planner->problem()));
  EXPECT_GE(plan.gap(), -kRounding);
  EXPECT_LT(plan.gap(), 0.005);
}

TEST(PlannerTest, ChangesClocksNoMoreOftenThanAllowed) {
  const auto planner = MakePlanner(Synthetic(4, 12));
  const int free = planner->Plan(planner->baseline().time * 1.05).value().clock_changes;
  for (const int least : {2, 4, 8}) {
    const auto plan = planner->Plan(planner->baseline().time * 1.05, {.least_instructions = least});
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_LE(plan.value().time, planner->baseline().time * 1.05);
    EXPECT_LT(plan.value().clock_changes, free);
    for (std::size_t stage = 0; stage < 4; ++stage) {
      const std::vector<double> clocks = ListClocks(plan.value(), stage);
      auto begin = clocks.begin();
      while (begin != clocks.end()) {
        const auto end = std::find_if(begin, clocks.end(), [&](double c) { return c != *begin; });
        EXPECT_GE(end - begin, least) << "stage " << stage;
        begin = end;
      }
    }
  }
}

TEST(PlannerTest, ChargesTheLatencyOfEachChange) {
  const auto planner = MakePlanner(Synthetic(4, 12));
  const Seconds deadline = planner->baseline().time * 1.05;
  const int free = planner->Plan(deadline).value().clock_changes;
  const auto plan = planner->Plan(deadline, {.latency = Seconds(0.01)});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_LE(plan.value().time, deadline);
  EXPECT_LT(plan.value().clock_changes, free);
  EXPECT_GT(Saving(plan.value(), planner->baseline(), planner->problem()), 0);
  // A change with this latency never pays, so no clock changes.
  EXPECT_EQ(planner->Plan(deadline, {.latency = Seconds(1)}).value().clock_changes, 0);
}

TEST(PlannerTest, RefusesRulesThatMeanNothing) {
  const auto planner = MakePlanner(Synthetic(2, 4));
  EXPECT_FALSE(planner->Plan(Seconds(10), {.least_instructions = 0}).ok());
  EXPECT_FALSE(planner->Plan(Seconds(10), {.latency = Seconds(-1)}).ok());
}

TEST(PlannerTest, WithOneClockThereIsNothingToChoose) {
  PipelineProfile profile = SyntheticProfile(2);
  for (InstructionProfile& instruction : profile.instructions) instruction.points.resize(1);
  const auto schedule = MakeSchedule("1f1b", {.stages = 2, .microbatches = 3});
  const auto planner = MakePlanner(MakeProblem(profile, schedule.value()).value());
  EXPECT_EQ(planner->frontier().points().size(), 1U);
  const PipelinePlan plan = planner->Plan(planner->baseline().time * 2).value();
  EXPECT_EQ(plan.time, planner->baseline().time);
  EXPECT_EQ(plan.clock_changes, 0);
  EXPECT_NEAR(plan.gap(), 0, 1e-5);
}

std::unique_ptr<Planner> PlannerBy(Demand demand, const Problem& problem) {
  auto planner = Planner::Make(problem, {.demand = demand, .large_graph = 0});
  EXPECT_TRUE(planner.ok());
  return std::move(planner).value();
}

TEST(PlannerTest, APlanForOneDeadlineIsAsGoodAsOneFromTheFrontier) {
  const Problem problem = Synthetic(4, 16);
  const auto planner = MakePlanner(problem);
  const auto alone = PlannerBy(Demand::kOneDeadline, problem);
  EXPECT_EQ(alone->solver(), Solver::kSingleDeadline);
  EXPECT_FALSE(alone->has_frontier());
  for (const double slack : {1.0, 1.02, 1.1}) {
    const Seconds deadline = planner->baseline().time * slack;
    const PipelinePlan once = alone->Plan(deadline).value();
    const PipelinePlan whole = planner->Plan(deadline).value();
    EXPECT_NEAR(once.bound.value(), whole.bound.value(), 1e-6 * whole.bound.value());
    EXPECT_LE(once.time, deadline + Seconds(1e-9));
    EXPECT_LT(once.gap(), kCoarse);
  }
  EXPECT_THAT(alone->Plan(planner->fastest_time() / 2).error().message,
              HasSubstr("the fastest iteration takes"));
}

TEST(PlannerTest, APlanForOneDeadlineKnowsPacesAndRules) {
  const Problem problem = Synthetic(4, 16);
  const auto planner = MakePlanner(problem);
  const auto alone = PlannerBy(Demand::kOneDeadline, problem);
  const Seconds deadline = planner->baseline().time * 1.2;
  const PipelinePlan paced = alone->PlanForPace(deadline).value();
  const PipelinePlan paced_whole = planner->PlanForPace(deadline).value();
  EXPECT_EQ(paced.waits_until, paced_whole.waits_until);
  EXPECT_NEAR(paced.bound.value(), paced_whole.bound.value(), 1e-6 * paced.bound.value());
  EXPECT_LT(paced.gap(), kCoarse);
  const ClockChangeRules rules{.least_instructions = 4, .latency = Seconds(0.001)};
  const PipelinePlan ruled = alone->Plan(deadline, rules).value();
  const PipelinePlan ruled_whole = planner->Plan(deadline, rules).value();
  EXPECT_LE(ruled.time, deadline + Seconds(1e-9));
  EXPECT_NEAR(ruled.bound.value(), ruled_whole.bound.value(), 1e-6 * ruled.bound.value());
  EXPECT_LT(ruled.energy, ruled_whole.energy * 1.02);
}

TEST(PlannerTest, APeriodicFrontierIsThatOfTheWholePipelineAndItsPlansAreThoseOfOneDeadline) {
  constexpr int kStages = 3;
  constexpr int kMicrobatches = 16 * kStages + 1;
  const auto schedule = MakeSchedule("1f1b", {.stages = kStages, .microbatches = kMicrobatches});
  const Problem problem = MakeProblem(SyntheticProfile(kStages, 0.05), schedule.value()).value();
  const auto whole = PlannerBy(Demand::kExactFrontier, problem);
  const auto periodic = PlannerBy(Demand::kFrontier, problem);
  const auto alone = PlannerBy(Demand::kOneDeadline, problem);
  ASSERT_EQ(whole->solver(), Solver::kWholeFrontier);
  ASSERT_EQ(periodic->solver(), Solver::kPeriodic);
  EXPECT_EQ(periodic->frontier().points().size(), whole->frontier().points().size());
  for (const double slack : {1.0, 1.05}) {
    const Seconds deadline = whole->baseline().time * slack;
    const PipelinePlan plan = periodic->Plan(deadline).value();
    EXPECT_EQ(plan.energy, alone->Plan(deadline).value().energy);
    EXPECT_NEAR(plan.bound.value(), whole->Plan(deadline).value().bound.value(),
                1e-6 * plan.bound.value());
  }
}

TEST(PlannerTest, SmallGraphsAreSolvedWholeWhateverIsAsked) {
  for (const Demand demand : {Demand::kFrontier, Demand::kOneDeadline, Demand::kExactFrontier}) {
    auto planner = Planner::Make(Synthetic(4, 8), {.demand = demand});
    ASSERT_TRUE(planner.ok());
    EXPECT_EQ(planner.value()->solver(), Solver::kWholeFrontier);
  }
}

TEST(PlannerTest, EveryScheduleCanBePlanned) {
  for (const char* const name : {"1f1b", "gpipe"}) {
    const auto planner = MakePlanner(Synthetic(4, 6, name));
    const auto plan = planner->Plan(planner->baseline().time);
    ASSERT_TRUE(plan.ok()) << name;
    EXPECT_LT(plan.value().gap(), kCoarse) << name;
  }
}

// These tests check the gaps that docs/pipeline.md states.
class RealInstanceTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RealInstanceTest, PlansAreWithinHalfAPercentOfTheBoundAndInTime) {
  const auto path = InstanceDirectory() / "instances" / (std::string(GetParam()) + ".json");
  const auto text = ReadSmallFile(path, 1 << 24);
  if (!text.ok()) GTEST_SKIP() << "needs the shared instances: " << text.error().message;
  const auto planner = MakePlanner(ParseInstance(text.value()).value());
  for (const double slack : {0.0, 0.01, 0.02, 0.05, 0.1}) {
    const Seconds deadline = planner->baseline().time * (1 + slack);
    const auto plan = planner->Plan(deadline);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_LE(plan.value().time, deadline + Seconds(1e-9)) << slack;
    EXPECT_LT(plan.value().gap(), 0.005) << slack;
    EXPECT_GT(plan.value().gap(), -kRounding) << slack;
    EXPECT_GT(Saving(plan.value(), planner->baseline(), planner->problem()), 0.08) << slack;
  }
}

INSTANTIATE_TEST_SUITE_P(Instances, RealInstanceTest,
                         ::testing::Values("sosp24_gpt3-175b_a100_sxm_8x12",
                                           "sosp24_gpt3-175b_a100_sxm_8x24",
                                           "sosp24_gpt3-175b_a40_8x12", "gpt3_a100_4x8",
                                           "gpt3_a100_8x32", "gpt3_a100_8x32_gpipe",
                                           "hist_bert_a40_4x8"));

TEST(ReplicasTest, TheOthersUseTheTimeOfTheStraggler) {
  const auto planner = MakePlanner(Synthetic(4, 8));
  const ReplicaOutcome outcome = PlanReplicas(*planner, {}).value();
  EXPECT_DOUBLE_EQ(outcome.pace.count(), planner->baseline().time.count() * 1.2);
  EXPECT_LT(outcome.planned_energy, outcome.intrinsic_energy);
  EXPECT_LT(outcome.intrinsic_energy, outcome.baseline_energy);
  const ReplicaOutcome nobody = PlanReplicas(*planner, {.stragglers = 0}).value();
  EXPECT_DOUBLE_EQ(nobody.pace.count(), planner->baseline().time.count());
  const ReplicaOutcome everybody = PlanReplicas(*planner, {.replicas = 2, .stragglers = 2}).value();
  EXPECT_DOUBLE_EQ(everybody.saving(), 0);
}

TEST(ReplicasTest, RefusesScenariosThatCannotBe) {
  const auto planner = MakePlanner(Synthetic(2, 2));
  EXPECT_FALSE(PlanReplicas(*planner, {.replicas = 0}).ok());
  EXPECT_FALSE(PlanReplicas(*planner, {.replicas = 2, .stragglers = 3}).ok());
  EXPECT_FALSE(PlanReplicas(*planner, {.slowdown = 0.5}).ok());
}

}  // namespace planner_test
}  // namespace zeus::pipeline
