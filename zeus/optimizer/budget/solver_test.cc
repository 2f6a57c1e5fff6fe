#include "zeus/optimizer/budget/solver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace zeus::water_filling {
namespace solver_test {

using literals::operator""_W;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SharedCurve Curve(const std::vector<std::pair<double, double>>& points) {
  std::vector<CurveSample> samples;
  for (const auto& [limit, time] : points)
    samples.push_back(
        {.limit = Watts(limit), .time = Seconds(time), .draw = Watts(limit), .draw_sigma = 0_W});
  return std::make_shared<const PowerCurve>(PowerCurve::FromSamples(samples).value());
}

// Each watt helps the steep one more, until it is fast.
SharedCurve Steep() { return Curve({{100, 2}, {200, 1}, {300, 1}}); }
SharedCurve Gentle() { return Curve({{100, 1.2}, {300, 1}}); }

Job MakeJob(std::string name, SharedCurve curve, std::size_t domain = 0, int gpus = 1) {
  return {.name = std::move(name),
          .curve = std::move(curve),
          .placements = {{.domain = domain, .gpus = gpus}}};
}

Allocation Solved(const Problem& problem) {
  auto allocation = Solve(problem);
  EXPECT_TRUE(allocation.ok()) << allocation.error().message;
  return std::move(allocation).value();
}

std::vector<double> Limits(const Allocation& allocation) {
  std::vector<double> limits;
  for (const JobGrant& grant : allocation.jobs) limits.push_back(grant.limit.value());
  return limits;
}

TEST(BudgetSolverTest, WattsGoWhereTheyBringMostSpeed) {
  Problem problem{.domains = {{.name = "site", .watts = 350_W}},
                  .jobs = {MakeJob("gentle", Gentle()), MakeJob("steep", Steep())}};
  const Allocation allocation = Solved(problem);
  EXPECT_THAT(Limits(allocation), ElementsAre(150, 200));
  EXPECT_NEAR(allocation.mean_slowdown, (1.15 + 1) / 2, 1e-12);
  EXPECT_NEAR(allocation.gap_points, 0, 1e-9);
  EXPECT_NEAR(allocation.domains[0].price, 0.001, 1e-12);
  EXPECT_NEAR(allocation.jobs[0].marginal, 0.001, 1e-12);
  EXPECT_EQ(allocation.jobs[1].marginal, 0);
  EXPECT_EQ(allocation.domains[0].free, 0_W);
  EXPECT_THAT(allocation.troubles, IsEmpty());
}

TEST(BudgetSolverTest, AFullRackDoesNotKeepTheOthersFromBuying) {
  Problem problem{
      .domains = {{.name = "site", .watts = 1000_W},
                  {.name = "rack-1", .parent = 0, .watts = 250_W},
                  {.name = "rack-2", .parent = 0, .watts = 900_W}},
      .jobs = {MakeJob("a", Steep(), 1), MakeJob("b", Steep(), 1), MakeJob("c", Gentle(), 2)}};
  const Allocation allocation = Solved(problem);
  EXPECT_THAT(Limits(allocation), ElementsAre(150, 100, 300));
  EXPECT_NEAR(allocation.domains[1].price, 0.01, 1e-12);
  EXPECT_EQ(allocation.domains[0].price, 0);
  EXPECT_NEAR(allocation.gap_points, 0, 1e-9);
}

TEST(BudgetSolverTest, AllGpusOfAJobGetTheSameWholeWatts) {
  Problem problem{.domains = {{.name = "site", .watts = 1007_W}},
                  .jobs = {MakeJob("big", Steep(), 0, 8)}};
  const Allocation allocation = Solved(problem);
  EXPECT_THAT(Limits(allocation), ElementsAre(125));
  EXPECT_EQ(allocation.jobs[0].taken, 1000_W);
  EXPECT_EQ(allocation.domains[0].free, 7_W);
  EXPECT_NEAR(allocation.gap_points, 100 * 0.01 * 7 / 8, 1e-9);
}

TEST(BudgetSolverTest, AHeavyJobIsServedFirst) {
  Problem problem{.domains = {{.name = "site", .watts = 300_W}},
                  .jobs = {MakeJob("light", Steep()), MakeJob("heavy", Steep())}};
  problem.jobs[1].weight = 4;
  EXPECT_THAT(Limits(Solved(problem)), ElementsAre(100, 200));
}

TEST(BudgetSolverTest, ASlowdownBoundComesBeforeSpeedOfOthers) {
  Problem problem{.domains = {{.name = "site", .watts = 300_W}},
                  .jobs = {MakeJob("steep", Steep()), MakeJob("bounded", Gentle())}};
  problem.jobs[1].max_slowdown = 1.05;
  const Allocation missed = Solved(problem);
  EXPECT_TRUE(missed.jobs[1].bound_missed);
  EXPECT_THAT(missed.troubles,
              ElementsAre(HasSubstr("not enough watts for the max_slowdown of \"bounded\"")));
  problem.domains[0].watts = 400_W;
  const Allocation kept = Solved(problem);
  EXPECT_THAT(Limits(kept), ElementsAre(150, 250));
  EXPECT_FALSE(kept.jobs[1].bound_missed);
  EXPECT_THAT(kept.troubles, IsEmpty());
}

TEST(BudgetSolverTest, OfBoundsThatDoNotAllFitTheHeavyOnesAreKept) {
  Problem problem{.domains = {{.name = "site", .watts = 400_W}},
                  .jobs = {MakeJob("light", Gentle()), MakeJob("heavy", Gentle())}};
  problem.jobs[0].max_slowdown = problem.jobs[1].max_slowdown = 1.02;
  problem.jobs[1].weight = 2;
  const Allocation allocation = Solved(problem);
  EXPECT_TRUE(allocation.jobs[0].bound_missed);
  EXPECT_FALSE(allocation.jobs[1].bound_missed);
}

TEST(BudgetSolverTest, TheWorstObjectiveSharesTheSlowdown) {
  Problem problem{.domains = {{.name = "site", .watts = 300_W}},
                  .jobs = {MakeJob("steep", Steep()), MakeJob("gentle", Gentle())}};
  problem.objective = Objective::kWorst;
  const Allocation allocation = Solved(problem);
  EXPECT_THAT(Limits(allocation), ElementsAre(182, 118));
  EXPECT_NEAR(allocation.worst_slowdown, 1.182, 1e-9);
  EXPECT_LT(allocation.gap_points, 0.1);
}

TEST(BudgetSolverTest, TheCostObjectiveStopsAtTheCheapestLimit) {
  Problem problem{.domains = {{.name = "site", .watts = 1000_W}},
                  .jobs = {MakeJob("gentle", Gentle()), MakeJob("steep", Steep())},
                  .objective = Objective::kCost,
                  .eta = 1};
  EXPECT_THAT(Limits(Solved(problem)), ElementsAre(100, 100));
  problem.eta = 0;
  EXPECT_THAT(Limits(Solved(problem)), ElementsAre(300, 200));
  problem.eta = 0.5;
  const Allocation half = Solved(problem);
  EXPECT_NEAR(half.loss, 0, 1e-9);
  problem.domains[0].watts = half.domains[0].taken - 50_W;
  const Allocation tight = Solved(problem);
  EXPECT_GT(tight.loss, 0);
  for (std::size_t j = 0; j < 2; ++j) EXPECT_LE(tight.jobs[j].limit, half.jobs[j].limit);
}

TEST(BudgetSolverTest, SpareWattsAreHandedOutOrKept) {
  Problem problem{.domains = {{.name = "site", .watts = 1000_W}}, .jobs = {MakeJob("a", Steep())}};
  EXPECT_THAT(Limits(Solved(problem)), ElementsAre(300));
  problem.spare = Spare::kKeep;
  EXPECT_THAT(Limits(Solved(problem)), ElementsAre(200));
}

TEST(BudgetSolverTest, NoiseIsNotBoughtAsSpeed) {
  // The dip at 150 W would look like the best bargain of all.
  const SharedCurve noisy = Curve({{100, 1.30}, {150, 1.02}, {200, 1.10}, {250, 1.0}});
  Problem problem{.domains = {{.name = "site", .watts = 300_W}},
                  .jobs = {MakeJob("noisy", noisy), MakeJob("gentle", Gentle())}};
  const Allocation allocation = Solved(problem);
  EXPECT_LE(allocation.bound, allocation.loss);
  EXPECT_GT(allocation.jobs[0].slowdown, 1.02);
}

TEST(BudgetSolverTest, DrawnPowerCountsWithTwoSigmas) {
  const std::vector<CurveSample> samples{
      {.limit = 100_W, .time = Seconds(2), .draw = 90_W, .draw_sigma = 1_W},
      {.limit = 200_W, .time = Seconds(1), .draw = 140_W, .draw_sigma = 5_W}};
  const auto curve = std::make_shared<const PowerCurve>(PowerCurve::FromSamples(samples).value());
  Problem problem{.domains = {{.name = "site", .watts = 150_W}},
                  .jobs = {MakeJob("a", curve)},
                  .resource = Resource::kDrawn};
  EXPECT_THAT(Limits(Solved(problem)), ElementsAre(200));
  problem.domains[0].watts = 149_W;
  EXPECT_THAT(Limits(Solved(problem)), ElementsAre(198));
}

TEST(BudgetSolverTest, TooFewWattsForTheLowestLimitsAreSaidWithTheJobsToHold) {
  Problem problem{
      .domains = {{.name = "site", .watts = 250_W}},
      .jobs = {MakeJob("heavy", Steep()), MakeJob("light", Gentle()), MakeJob("middle", Steep())}};
  problem.jobs[0].weight = 4;
  problem.jobs[1].weight = 0.5;
  for (Job& job : problem.jobs) job.idle = 30_W;
  const Allocation allocation = Solved(problem);
  EXPECT_THAT(Limits(allocation), ElementsAre(100, 100, 100));
  ASSERT_TRUE(allocation.shortfall);
  EXPECT_THAT(allocation.shortfall->hold, ElementsAre(1));
  EXPECT_EQ(allocation.domains[0].missing, 50_W);
  EXPECT_THAT(
      allocation.troubles,
      ElementsAre("the budget of \"site\" is 250.0 W, of which 0.0 W are reserved, but its "
                  "jobs take 300.0 W at their lowest limits: 50.0 W are missing, and all of "
                  "them stay at their lowest limits",
                  "to fit, these jobs would have to be held: \"light\""));
}

TEST(BudgetSolverTest, ARackThatIsShortDoesNotHurtTheOther) {
  Problem problem{.domains = {{.name = "site", .watts = 1000_W},
                              {.name = "short", .parent = 0, .watts = 50_W},
                              {.name = "rich", .parent = 0, .watts = 400_W}},
                  .jobs = {MakeJob("a", Steep(), 1), MakeJob("b", Steep(), 2)}};
  const Allocation allocation = Solved(problem);
  EXPECT_THAT(Limits(allocation), ElementsAre(100, 300));
  EXPECT_TRUE(allocation.shortfall);
}

TEST(BudgetSolverTest, AJobAcrossRacksIsWeighedAgainstBoth) {
  // Greedily the job across the racks wins each watt; together those that it displaces are worth
  // more.
  Problem problem{
      .domains = {{.name = "rack-1", .watts = 300_W}, {.name = "rack-2", .watts = 300_W}},
      .jobs = {MakeJob("one", Curve({{100, 1.9}, {200, 1}}), 0),
               MakeJob("two", Curve({{100, 1.9}, {200, 1}}), 1), MakeJob("across", Steep())}};
  problem.jobs[2].placements = {{.domain = 0, .gpus = 1}, {.domain = 1, .gpus = 1}};
  problem.jobs[2].weight = 0.55;
  const Allocation allocation = Solved(problem);
  EXPECT_THAT(Limits(allocation), ElementsAre(200, 200, 100));
  EXPECT_LT(allocation.gap_points, 0.1);
}

TEST(BudgetSolverTest, WithoutJobsThereIsNothingToPay) {
  const Allocation allocation = Solved({.domains = {{.name = "site", .watts = 100_W}}});
  EXPECT_EQ(allocation.loss, 0);
  EXPECT_EQ(allocation.gap_points, 0);
  EXPECT_EQ(allocation.domains[0].free, 100_W);
}

TEST(BudgetProblemTest, BudgetsTypedTenTimesTooLargeOrTooSmallAreDoubted) {
  Problem problem{.domains = {{.name = "site", .watts = 5000_W, .reserved = 100_W}},
                  .jobs = {MakeJob("a", Steep()), MakeJob("b", Gentle())}};
  EXPECT_THAT(Doubts(problem),
              ElementsAre("the budget of \"site\", 5000 W, is 7.14 times what its 2 GPUs can take "
                          "(600.0 W), so it limits nothing: is there a digit too many?"));
  problem.domains[0].watts = 125_W;
  EXPECT_THAT(
      Doubts(problem),
      ElementsAre("the budget of \"site\", 125.0 W of which 100.0 W are reserved, is 12.5 % "
                  "of what its 2 GPUs take at their lowest limits (200.0 W): is there a "
                  "digit missing?"));
  problem.domains[0].watts = 500_W;
  EXPECT_THAT(Doubts(problem), IsEmpty());
  problem.domains[0].watts = Watts(std::numeric_limits<double>::infinity());
  EXPECT_THAT(Doubts(problem), IsEmpty());
}

TEST(BudgetProblemTest, WhatHasNoMeaningIsRefusedByName) {
  const Problem good{.domains = {{.name = "site", .watts = 500_W}},
                     .jobs = {MakeJob("a", Steep())}};
  const auto refusal = [&](auto&& change) {
    Problem problem = good;
    change(problem);
    const Status status = Check(problem);
    return status.ok() ? "accepted" : status.error().message;
  };
  EXPECT_EQ(refusal([](Problem&) {}), "accepted");
  EXPECT_EQ(refusal([](Problem& it) { it.domains[0].watts = Watts(NAN); }),
            "the domain \"site\" has a budget of nan W: it must be 0 or more");
  EXPECT_THAT(refusal([](Problem& it) { it.domains[0].reserved = Watts(-1); }),
              HasSubstr("reserves -1 W"));
  EXPECT_THAT(refusal([](Problem& it) { it.domains[0].parent = 0; }), HasSubstr("circle"));
  EXPECT_THAT(refusal([](Problem& it) { it.domains[0].parent = 7; }), HasSubstr("does not exist"));
  EXPECT_EQ(refusal([](Problem& it) { it.jobs[0].curve = nullptr; }),
            "the job \"a\" has no power curve");
  EXPECT_THAT(refusal([](Problem& it) { it.jobs[0].placements.clear(); }),
              HasSubstr("in no domain"));
  EXPECT_THAT(refusal([](Problem& it) { it.jobs[0].placements[0].gpus = 0; }), HasSubstr("0 GPUs"));
  EXPECT_THAT(refusal([](Problem& it) { it.jobs[0].weight = 0; }), HasSubstr("weight of 0"));
  EXPECT_THAT(refusal([](Problem& it) { it.jobs[0].max_slowdown = 0.9; }),
              HasSubstr("max_slowdown of 0.9"));
  EXPECT_THAT(refusal([](Problem& it) { it.jobs[0].highest = Watts(NAN); }),
              HasSubstr("limit of nan W"));
  EXPECT_THAT(refusal([](Problem& it) { it.jobs[0].idle = Watts(-1); }),
              HasSubstr("idle power of -1 W"));
  EXPECT_THAT(refusal([](Problem& it) { it.step = 0_W; }), HasSubstr("steps of 0 W"));
  EXPECT_THAT(refusal([](Problem& it) { it.eta = NAN; }), HasSubstr("eta is nan"));
}

}  // namespace solver_test
}  // namespace zeus::water_filling
