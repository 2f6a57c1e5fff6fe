#include "zeus/plan/local_plan_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/plan/plan_repository.h"
#include "zeus/plan/testing/plan_samples.h"

namespace zeus {
namespace local_plan_service_test {

using ::testing::HasSubstr;
using zeus::testing::APlanSpec;

class LocalPlanServiceTest : public ::testing::Test {
 protected:
  CurrentPlan Submit(const PlanSpec& spec) {
    const auto submitted = service_.Submit(spec);
    EXPECT_TRUE(submitted.ok()) << submitted.error().message;
    return submitted.ok() ? submitted.value() : CurrentPlan{};
  }
  void ExpectRefused(const PlanSpec& spec, const std::string& words) {
    const auto submitted = service_.Submit(spec);
    ASSERT_FALSE(submitted.ok()) << words;
    EXPECT_EQ(submitted.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(submitted.error().message, HasSubstr(words));
    EXPECT_TRUE(service_.List("", 10).value().empty());
  }

  SystemClock clock_;
  MemoryPlanRepository repository_;
  LocalPlanService service_{repository_, clock_};
};

TEST_F(LocalPlanServiceTest, APlanSavesEnergyAndTakesNoLonger) {
  const CurrentPlan current = Submit(APlanSpec("a"));
  EXPECT_TRUE(current.created);
  EXPECT_EQ(current.version, 1);
  EXPECT_EQ(current.pace, std::nullopt);
  EXPECT_LE(current.plan.time, current.baseline_time);
  EXPECT_LT(current.plan.energy, current.baseline_energy);
  ASSERT_EQ(current.plan.stages.size(), 2U);
  EXPECT_EQ(current.plan.stages[0].size(), 8U);
}

TEST_F(LocalPlanServiceTest, TheSameSpecAgainIsTheSamePlan) {
  const CurrentPlan first = Submit(APlanSpec("a"));
  const CurrentPlan second = Submit(APlanSpec("a"));
  EXPECT_FALSE(second.created);
  EXPECT_TRUE(SameClocks(first.plan, second.plan));
  EXPECT_EQ(service_.figures().solves, 1);
}

TEST_F(LocalPlanServiceTest, AnotherSpecUnderTheSameIdIsAConflictThatSaysWhatDiffers) {
  Submit(APlanSpec("a"));
  PlanSpec other = APlanSpec("a");
  other.microbatches = 8;
  other.profile.blocking_power = Watts(70);
  const auto conflict = service_.Submit(other);
  ASSERT_FALSE(conflict.ok());
  EXPECT_EQ(conflict.error().code, ErrorCode::kConflict);
  EXPECT_THAT(conflict.error().message, HasSubstr("microbatches is 4, not 8"));
  EXPECT_THAT(conflict.error().message, HasSubstr("profile differs"));
}

TEST_F(LocalPlanServiceTest, WhoGivesNoIdGetsOne) {
  const CurrentPlan first = Submit(APlanSpec(""));
  const CurrentPlan second = Submit(APlanSpec(""));
  EXPECT_THAT(first.id, ::testing::StartsWith("plan-"));
  EXPECT_NE(first.id, second.id);
  EXPECT_TRUE(service_.Get(first.id).ok());
}

TEST_F(LocalPlanServiceTest, WhatMakesNoSenseIsRefusedAndNotKept) {
  PlanSpec spec = APlanSpec("a b");
  ExpectRefused(spec, "id: ");
  spec = APlanSpec("a");
  spec.microbatches = 0;
  ExpectRefused(spec, "microbatches: must be 1 or more");
  spec = APlanSpec("a");
  spec.schedule = "zigzag";
  ExpectRefused(spec, "zigzag");
  spec = APlanSpec("a");
  spec.slowdown = std::numeric_limits<double>::quiet_NaN();
  ExpectRefused(spec, "slowdown: ");
  spec = APlanSpec("a");
  spec.profile.instructions.pop_back();
  ExpectRefused(spec, "backward");
  spec = APlanSpec("a");
  spec.custom_schedule = "F0 B0";
  ExpectRefused(spec, "custom_schedule: ");
  spec = APlanSpec("a");
  spec.clock_changes.latency = Seconds(-1);
  ExpectRefused(spec, "latency_seconds: ");
}

TEST_F(LocalPlanServiceTest, ADeadlineThatCannotBeMetIsToldTheFastestTime) {
  PlanSpec spec = APlanSpec("a");
  spec.slowdown = 0.9;
  ExpectRefused(spec, "the fastest iteration takes ");
  spec.slowdown = 1;
  Submit(spec);
  const auto plan = service_.PlanFor("a", Seconds(0.1));
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message, HasSubstr("the fastest iteration takes "));
  EXPECT_FALSE(service_.PlanFor("a", Seconds(-1)).ok());
}

TEST_F(LocalPlanServiceTest, PipelinesThatAreTooLargeAreRefusedWithTheLimit) {
  LocalPlanService small(repository_, clock_, {.most_instructions = 15});
  const auto refused = small.Submit(APlanSpec("a"));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("16 instructions"));
  EXPECT_THAT(refused.error().message, HasSubstr("at most 15"));
}

TEST_F(LocalPlanServiceTest, WhoKnowsALaterVersionOfADeletedPlanGetsThePresentOne) {
  const CurrentPlan usual = Submit(APlanSpec("a"));
  ASSERT_EQ(service_.ReportPace("a", 1.2 * usual.baseline_time).value().version, 2);
  ASSERT_TRUE(service_.Delete("a").ok());
  Submit(APlanSpec("a"));
  const auto present = service_.GetNewer("a", 2).value();
  ASSERT_TRUE(present);
  EXPECT_EQ(present->version, 1);
  EXPECT_FALSE(service_.GetNewer("a", 1).value());
}

TEST_F(LocalPlanServiceTest, AStragglersPaceIsANewVersionUntilItIsGone) {
  const CurrentPlan usual = Submit(APlanSpec("a"));
  const Seconds pace = 1.2 * usual.baseline_time;
  const CurrentPlan slow = service_.ReportPace("a", pace).value();
  EXPECT_EQ(slow.version, 2);
  EXPECT_EQ(slow.pace, pace);
  EXPECT_LE(slow.plan.time, pace);
  EXPECT_GT(slow.plan.time, usual.plan.time);
  EXPECT_EQ(service_.ReportPace("a", pace).value().version, 2);
  EXPECT_EQ(service_.Get("a").value().version, 2);
  const CurrentPlan after = service_.ReportPace("a", std::nullopt).value();
  EXPECT_EQ(after.version, 3);
  EXPECT_TRUE(SameClocks(after.plan, usual.plan));
}

TEST_F(LocalPlanServiceTest, APaceThatNoIterationHasIsRefused) {
  PlanSpec spec = APlanSpec("a");
  spec.data_parallel = 3;
  spec.tensor_parallel = 2;
  EXPECT_EQ(Submit(spec).ranks, 12);
  for (const double pace : {0.0, -1.0, 9e-7, 1.1e6, 1e308, std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()}) {
    const auto refused = service_.ReportPace("a", Seconds(pace));
    ASSERT_FALSE(refused.ok()) << pace;
    EXPECT_THAT(refused.error().message,
                HasSubstr("pace_seconds: must be between 1e-06 and 1e+06"));
  }
  EXPECT_EQ(service_.Get("a").value().pace, std::nullopt);
  const auto longest = service_.ReportPace("a", Seconds(1e6));
  ASSERT_TRUE(longest.ok());
  EXPECT_TRUE(std::isfinite(longest.value().plan.energy.value()));
}

TEST_F(LocalPlanServiceTest, APaceThatChangesNoClockIsNoNewVersion) {
  const CurrentPlan usual = Submit(APlanSpec("a"));
  const CurrentPlan quick = service_.ReportPace("a", 0.5 * usual.baseline_time).value();
  EXPECT_EQ(quick.version, 1);
  EXPECT_EQ(quick.pace, 0.5 * usual.baseline_time);
  const CurrentPlan slow = service_.ReportPace("a", 10 * usual.baseline_time).value();
  const CurrentPlan slower = service_.ReportPace("a", 20 * usual.baseline_time).value();
  EXPECT_EQ(slow.version, slower.version);
}

TEST_F(LocalPlanServiceTest, OnlyWhatIsNewerIsTold) {
  const CurrentPlan usual = Submit(APlanSpec("a"));
  EXPECT_FALSE(service_.GetNewer("a", 1).value());
  ASSERT_TRUE(service_.ReportPace("a", 1.2 * usual.baseline_time).ok());
  const auto newer = service_.GetNewer("a", 1).value();
  ASSERT_TRUE(newer);
  EXPECT_EQ(newer->version, 2);
  EXPECT_EQ(service_.GetNewer("b", 1).error().code, ErrorCode::kNotFound);
}

TEST_F(LocalPlanServiceTest, AnotherServiceOnTheSameRepositoryGivesTheSameAnswers) {
  const CurrentPlan usual = Submit(APlanSpec("a"));
  const CurrentPlan slow = service_.ReportPace("a", 1.1 * usual.baseline_time).value();
  LocalPlanService other(repository_, clock_);
  const CurrentPlan there = other.Get("a").value();
  EXPECT_EQ(there.version, slow.version);
  EXPECT_EQ(there.pace, slow.pace);
  EXPECT_TRUE(SameClocks(there.plan, slow.plan));
  EXPECT_EQ(there.plan.energy, slow.plan.energy);
  EXPECT_EQ(other.GetFrontier("a").value().points.size(),
            service_.GetFrontier("a").value().points.size());
}

TEST_F(LocalPlanServiceTest, APlanForADeadlineLeavesTheCurrentOneAlone) {
  const CurrentPlan usual = Submit(APlanSpec("a"));
  const auto plan = service_.PlanFor("a", 1.05 * usual.baseline_time);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_LE(plan.value().time, 1.05 * usual.baseline_time);
  EXPECT_LE(plan.value().energy, usual.plan.energy);
  EXPECT_EQ(service_.Get("a").value().version, 1);
}

TEST_F(LocalPlanServiceTest, TheFrontierGoesFromTheSlowestToTheFastestTime) {
  Submit(APlanSpec("a"));
  const PlanFrontier frontier = service_.GetFrontier("a").value();
  ASSERT_GE(frontier.points.size(), 2U);
  EXPECT_GT(frontier.points.front().time, frontier.points.back().time);
  EXPECT_NEAR(frontier.points.back().time.count(), frontier.fastest_time.count(), 1e-4);
}

TEST_F(LocalPlanServiceTest, ADeletedPlanIsGoneAndCanBeMadeAnew) {
  Submit(APlanSpec("a"));
  ASSERT_TRUE(service_.Delete("a").ok());
  EXPECT_EQ(service_.Get("a").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(service_.Delete("a").error().code, ErrorCode::kNotFound);
  PlanSpec other = APlanSpec("a");
  other.microbatches = 6;
  EXPECT_EQ(Submit(other).plan.stages[0].size(), 12U);
}

TEST_F(LocalPlanServiceTest, ManyWhoSubmitTheSameGetOnePlanSolvedOnce) {
  constexpr int kThreads = 16;
  std::atomic<int> created = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      if (Submit(APlanSpec("a")).created) ++created;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(created, 1);
  EXPECT_EQ(service_.figures().solves, 1);
}

TEST_F(LocalPlanServiceTest, NoReportOfManyAtOnceIsLost) {
  const CurrentPlan usual = Submit(APlanSpec("a"));
  LocalPlanService other(repository_, clock_);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      LocalPlanService& mine = i % 2 == 0 ? service_ : other;
      const auto reported = mine.ReportPace("a", (1.0 + 0.02 * i) * usual.baseline_time);
      EXPECT_TRUE(reported.ok()) << reported.error().message;
    });
  for (std::thread& thread : threads) thread.join();
  const CurrentPlan here = service_.Get("a").value();
  EXPECT_EQ(here.version, other.Get("a").value().version);
  EXPECT_TRUE(SameClocks(here.plan, other.Get("a").value().plan));
}

TEST_F(LocalPlanServiceTest, AServiceThatIsAboutToEndSolvesNothing) {
  service_.Stop();
  const auto submitted = service_.Submit(APlanSpec("a"));
  ASSERT_FALSE(submitted.ok());
  EXPECT_EQ(submitted.error().code, ErrorCode::kUnavailable);
  // The spec was stored, so another server can make its plan.
  EXPECT_TRUE(LocalPlanService(repository_, clock_).Get("a").ok());
}

TEST(PlanSpecTest, ASpecComesBackFromJsonAsItWas) {
  PlanSpec spec = APlanSpec("a");
  spec.data_parallel = 4;
  spec.clock_changes = {.least_instructions = 3, .latency = Seconds(0.002)};
  const auto back = PlanSpecFromJson(ToJson(spec));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back.value(), spec);
  spec.tensor_parallel = 2;
  EXPECT_FALSE(back.value() == spec);
}

TEST(PlanSpecTest, MisspeltFieldsAreNoticed) {
  Json json = ToJson(APlanSpec("a"));
  json["microbaches"] = 4;
  EXPECT_THAT(PlanSpecFromJson(json).error().message, HasSubstr("microbaches"));
  json.erase("microbaches");
  json["clock_changes"]["latency"] = 1;
  EXPECT_THAT(PlanSpecFromJson(json).error().message, HasSubstr("latency"));
  json.erase("profile");
  EXPECT_FALSE(PlanSpecFromJson(json).ok());
}

}  // namespace local_plan_service_test
}  // namespace zeus
