#include "zeus/plan/pipeline_sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "zeus/plan/local_plan_service.h"
#include "zeus/plan/plan_repository.h"
#include "zeus/plan/session_repository.h"
#include "zeus/plan/testing/plan_samples.h"

namespace zeus {
namespace pipeline_sessions_test {

using ::testing::HasSubstr;

class PipelineSessionsTest : public ::testing::Test {
 protected:
  // Registers a pipeline of two stages with one rank each.
  std::string Register(PipelineSessions& sessions, const std::string& metadata) {
    const auto session = sessions.Register({.pipeline_parallel = 2, .metadata = metadata});
    EXPECT_TRUE(session.ok()) << session.error().message;
    if (!session.ok()) return "";
    for (const int rank : {0, 1})
      EXPECT_TRUE(sessions.AddRank(session.value().id, Rank(rank)).ok());
    return session.value().id;
  }
  static SessionRank Rank(int rank) {
    return {.rank = rank, .pipeline_rank = rank, .clocks_mhz = {1410, 1200, 1005}};
  }
  static pipeline::RankClocks Clocks(PipelineSessions& sessions, const std::string& id, int rank) {
    const auto clocks = sessions.ClocksFor(id, rank);
    EXPECT_TRUE(clocks.ok()) << clocks.error().message;
    EXPECT_TRUE(clocks.ok() && clocks.value());
    return clocks.ok() && clocks.value() ? *clocks.value() : pipeline::RankClocks{};
  }
  // Lower clocks take more time and less energy, as on a GPU. Stage 1 has more to do.
  static RankReport Measured(int rank, double mhz) {
    const double time = (rank == 0 ? 0.1 : 0.13) * 1410 / mhz;
    const double energy = 300 * (rank == 0 ? 0.1 : 0.13) * mhz / 1410;
    return {
        .rank = rank,
        .points = {
            {.instruction = "forward", .time = Seconds(time), .energy = Joules(energy)},
            {.instruction = "backward", .time = Seconds(2 * time), .energy = Joules(2 * energy)}}};
  }

  SystemClock clock_;
  MemoryPlanRepository plan_repository_;
  MemorySessionRepository repository_;
  LocalPlanService plans_{plan_repository_, clock_};
  PipelineSessions sessions_{repository_, plans_, clock_, {}};
};

TEST_F(PipelineSessionsTest, NobodyGetsClocksBeforeEverybodyHasRegistered) {
  const std::string id =
      sessions_.Register({.pipeline_parallel = 2, .metadata = "microbatches=4"}).value().id;
  EXPECT_FALSE(sessions_.ClocksFor(id, 0).value());
  EXPECT_FALSE(sessions_.AddRank(id, Rank(0)).value());
  EXPECT_FALSE(sessions_.ClocksFor(id, 0).value());
  EXPECT_TRUE(sessions_.AddRank(id, Rank(1)).value());
  EXPECT_EQ(Clocks(sessions_, id, 0).size(), 8U);
  EXPECT_FALSE(sessions_.ClocksFor(id, 2).ok());
  EXPECT_EQ(sessions_.ClocksFor("nobody", 0).error().code, ErrorCode::kNotFound);
}

TEST_F(PipelineSessionsTest, IdsNeverMeet) {
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i)
    ids.insert(sessions_.Register({.metadata = "microbatches=4"}).value().id);
  EXPECT_EQ(ids.size(), 100U);
}

TEST_F(PipelineSessionsTest, APlanIsRunByEveryReplicaAndFollowsStragglers) {
  const CurrentPlan plan = plans_.Submit(zeus::testing::APlanSpec("gpt")).value();
  const std::string id =
      sessions_
          .Register({.data_parallel = 2, .pipeline_parallel = 2, .metadata = "run 7, plan=gpt"})
          .value()
          .id;
  for (int rank = 0; rank < 4; ++rank)
    ASSERT_TRUE(sessions_
                    .AddRank(id, {.rank = rank,
                                  .data_rank = rank / 2,
                                  .pipeline_rank = rank % 2,
                                  .clocks_mhz = {1410, 1200, 1005}})
                    .ok());
  EXPECT_EQ(Clocks(sessions_, id, 1), Clocks(sessions_, id, 3));
  EXPECT_EQ(Clocks(sessions_, id, 0)[0].second, plan.plan.stages[0][0].clock);
  const auto before = Clocks(sessions_, id, 1);
  ASSERT_TRUE(plans_.ReportPace("gpt", 1.25 * plan.baseline_time).ok());
  EXPECT_NE(Clocks(sessions_, id, 1), before);
}

TEST_F(PipelineSessionsTest, ClocksAreFoundOutFromTheHighestDown) {
  const std::string id = Register(sessions_, "microbatches=4");
  for (const double mhz : {1410.0, 1200.0, 1005.0}) {
    for (const int rank : {0, 1})
      for (const auto& [name, clock] : Clocks(sessions_, id, rank))
        EXPECT_EQ(clock, Hertz::FromMega(mhz));
    EXPECT_FALSE(sessions_.Report(id, Measured(0, mhz)).value());
    // A rank must not run ahead of the others.
    EXPECT_FALSE(sessions_.ClocksFor(id, 0).value());
    EXPECT_TRUE(sessions_.Report(id, Measured(1, mhz)).value());
  }
  const CurrentPlan plan = plans_.Get(id).value();
  EXPECT_LT(plan.plan.energy, plan.baseline_energy);
  EXPECT_EQ(Clocks(sessions_, id, 0)[0].second, plan.plan.stages[0][0].clock);
  EXPECT_FALSE(sessions_.Report(id, Measured(0, 1410)).value());
}

TEST_F(PipelineSessionsTest, AWholeProfileIsPlannedAtOnce) {
  const std::string id = Register(sessions_, "microbatches=4 slowdown=1.1");
  for (const int rank : {0, 1}) {
    RankReport whole{.rank = rank};
    for (const double mhz : {1410.0, 1005.0})
      for (RankReport::Point point : Measured(rank, mhz).points) {
        point.clock = Hertz::FromMega(mhz);
        whole.points.push_back(point);
      }
    ASSERT_EQ(sessions_.Report(id, whole).value(), rank == 1);
  }
  EXPECT_TRUE(plans_.Get(id).ok());
}

TEST_F(PipelineSessionsTest, WhatAStageDoesNotRunSoIsRefusedAndMayBeSentAgain) {
  const std::string id = Register(sessions_, "microbatches=4");
  const auto why = [&](const RankReport& report) {
    const auto taken = sessions_.Report(id, report);
    return taken.ok() ? "taken" : taken.error().message;
  };
  EXPECT_THAT(why({.rank = 0}), HasSubstr("time_breakdown: of rank 0 lacks \"backward\""));
  RankReport rare = Measured(0, 1410);
  rare.points[0].times_in_iteration = 3;
  EXPECT_THAT(why(rare), HasSubstr("3 times of \"forward\""));
  EXPECT_TRUE(repository_.Measurements(id).value().empty());
  rare.points[0].times_in_iteration = 4;
  rare.points.push_back({.instruction = "idle", .time = Seconds(1), .energy = Joules(1)});
  EXPECT_EQ(why(rare), "taken");
}

TEST_F(PipelineSessionsTest, AProfileThatCannotBePlannedIsMeasuredAgain) {
  const std::string id = Register(sessions_, "microbatches=4");
  RankReport part = Measured(0, 1410);
  for (RankReport::Point& point : part.points) point.clock = Hertz::FromMega(1410);
  // An instruction that occurs twice makes it a whole profile, but both have the same clock.
  part.points.push_back(part.points[0]);
  ASSERT_TRUE(sessions_.Report(id, part).ok());
  const auto failed = sessions_.Report(id, Measured(1, 1410));
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("measure again"));
  for (const double mhz : {1410.0, 1200.0, 1005.0})
    for (const int rank : {0, 1}) {
      EXPECT_EQ(Clocks(sessions_, id, rank)[0].second, Hertz::FromMega(mhz));
      ASSERT_TRUE(sessions_.Report(id, Measured(rank, mhz)).ok());
    }
  EXPECT_TRUE(plans_.Get(id).ok());
}

TEST_F(PipelineSessionsTest, TheServersScheduleIsForWhoSaysNothing) {
  const auto clocks = [](double mhz) {
    return pipeline::RankClocks{{"forward", Hertz::FromMega(mhz)}};
  };
  PipelineSessions sessions(repository_, plans_, clock_,
                            {.schedule = {clocks(1410), clocks(1200)}});
  const std::string id = Register(sessions, "just words");
  EXPECT_EQ(Clocks(sessions, id, 1), clocks(1200));
  EXPECT_FALSE(sessions.Report(id, Measured(0, 1)).value());
  const auto larger = sessions.Register({.pipeline_parallel = 3});
  ASSERT_FALSE(larger.ok());
  EXPECT_THAT(larger.error().message, HasSubstr("2 lists"));
}

TEST_F(PipelineSessionsTest, ARankGetsOnlyClocksThatItsGpuHas) {
  const auto clocks = [](double first, double second, double third, double fourth) {
    return pipeline::RankClocks{{"forward", Hertz::FromMega(first)},
                                {"forward", Hertz::FromMega(second)},
                                {"backward", Hertz::FromMega(third)},
                                {"backward", Hertz::FromMega(fourth)}};
  };
  PipelineSessions sessions(
      repository_, plans_, clock_,
      {.schedule = {clocks(1201, 1005, 210, 0), clocks(1980, 1200, 1199, 1410)}});
  const std::string id = Register(sessions, "");
  EXPECT_EQ(Clocks(sessions, id, 0), clocks(1410, 1005, 1005, 0));
  EXPECT_EQ(Clocks(sessions, id, 1), clocks(1410, 1200, 1200, 1410));
}

TEST_F(PipelineSessionsTest, WhatCannotComeToClocksIsRefusedAtOnce) {
  EXPECT_THAT(sessions_.Register({}).error().message, HasSubstr("--pipeline-schedule"));
  EXPECT_EQ(sessions_.Register({.metadata = "plan=gone"}).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(sessions_.Register({.metadata = "microbatches=many"}).error().message,
              HasSubstr("microbatches=many"));
  EXPECT_FALSE(sessions_.Register({.metadata = "microbatches=4 schedule=zigzag"}).ok());
  EXPECT_FALSE(sessions_.Register({.data_parallel = 100'000, .metadata = "microbatches=4"}).ok());
  ASSERT_TRUE(plans_.Submit(zeus::testing::APlanSpec("gpt")).ok());
  EXPECT_THAT(sessions_.Register({.pipeline_parallel = 3, .metadata = "plan=gpt"}).error().message,
              HasSubstr("plan gpt has 2 stages, not 3"));
}

TEST_F(PipelineSessionsTest, RanksThatCannotBeAreRefused) {
  const std::string id =
      sessions_.Register({.pipeline_parallel = 2, .metadata = "microbatches=4"}).value().id;
  EXPECT_FALSE(sessions_.AddRank(id, {.rank = 2, .clocks_mhz = {1410}}).ok());
  EXPECT_FALSE(sessions_.AddRank(id, {.tensor_rank = 1, .clocks_mhz = {1410}}).ok());
  EXPECT_FALSE(sessions_.AddRank(id, {.rank = 0}).ok());
  EXPECT_EQ(sessions_.Report(id, Measured(0, 1410)).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(sessions_.AddRank("nobody", Rank(0)).error().code, ErrorCode::kNotFound);
}

TEST_F(PipelineSessionsTest, TwoRanksCannotStandInOnePlace) {
  const std::string id =
      sessions_.Register({.pipeline_parallel = 2, .metadata = "microbatches=4"}).value().id;
  ASSERT_TRUE(sessions_.AddRank(id, Rank(0)).ok());
  SessionRank second = Rank(0);
  second.rank = 1;
  const auto refused = sessions_.AddRank(id, second);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_THAT(refused.error().message, HasSubstr("rank 0 is"));
  for (const auto& outside : {SessionRank{.rank = 1, .data_rank = 1, .clocks_mhz = {1410}},
                              SessionRank{.rank = 1, .pipeline_rank = 2, .clocks_mhz = {1410}},
                              SessionRank{.rank = 1, .tensor_rank = -1, .clocks_mhz = {1410}}})
    EXPECT_EQ(sessions_.AddRank(id, outside).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(sessions_.RegisteredRanks(id).value(), 1);
  EXPECT_TRUE(sessions_.AddRank(id, Rank(1)).value());
}

TEST_F(PipelineSessionsTest, WhatNobodyAsksAboutIsForgotten) {
  VirtualClock clock;
  PipelineSessions sessions(repository_, plans_, clock, {.forgotten_after = Seconds(100)});
  const std::string id = Register(sessions, "microbatches=4");
  clock.Advance(Seconds(99));
  EXPECT_EQ(sessions.DeleteUnused().value(), 0);
  ASSERT_TRUE(sessions.AddRank(id, Rank(0)).ok());
  clock.Advance(Seconds(99));
  EXPECT_EQ(sessions.DeleteUnused().value(), 0);
  clock.Advance(Seconds(2));
  EXPECT_EQ(sessions.DeleteUnused().value(), 1);
  EXPECT_EQ(sessions.ClocksFor(id, 0).error().code, ErrorCode::kNotFound);
}

TEST(SessionSettingsTest, ClocksToMeasureAreSpreadOverThoseThatAllHave) {
  SessionRank first{.rank = 0};
  for (int clock = 1410; clock >= 210; clock -= 15) first.clocks_mhz.push_back(clock);
  SessionRank second{.rank = 1, .clocks_mhz = {1200, 1410, 1005, 17, 300}};
  const std::vector<int> spread = ClocksToMeasure({first});
  EXPECT_EQ(spread.size(), 8U);
  EXPECT_EQ(spread.front(), 1410);
  EXPECT_GE(spread.back(), 564);
  EXPECT_EQ(ClocksToMeasure({first, second}), (std::vector{1410, 1200, 1005}));
  EXPECT_TRUE(ClocksToMeasure({}).empty());
}

}  // namespace pipeline_sessions_test
}  // namespace zeus
