#include "zeus/replay/history/run_history.h"

#include <gmock/gmock.h>

#include "zeus/base/json.h"

namespace zeus::replay {
namespace run_history_test {

using ::testing::HasSubstr;

Trial ATrial() {
  return {.number = 1,
          .batch_size = 32,
          .gpu_model = "V100",
          .max_power = Watts(250),
          .status = TrialStatus::kConverged,
          .epochs = 4,
          .time = Seconds(40),
          .energy = Joules(4000)};
}

JobEvent AReport(int epochs, double time, double energy, double limit = 200) {
  return {.kind = EventKind::kTrialReported,
          .trial = 1,
          .detail = {{"epochs", epochs},
                     {"time_seconds", time},
                     {"energy_joules", energy},
                     {"power_limit_watts", limit}}};
}

TEST(HistoryBuilderTest, WhatRunsDoIsTaken) {
  HistoryBuilder builder;
  ASSERT_TRUE(builder.Add(ATrial()).ok());
  ASSERT_TRUE(builder.Add(AReport(1, 10, 1000)).ok());
  ASSERT_TRUE(builder.Add(AReport(4, 40, 4000)).ok());
  const auto history = std::move(builder).Finish();
  ASSERT_TRUE(history.ok());
  EXPECT_EQ(history.value().trials.size(), 1u);
  EXPECT_EQ(history.value().events.size(), 2u);
}

struct BadReport {
  const char* name;
  JobEvent report;
  const char* reason;
};

class BadReportTest : public ::testing::TestWithParam<BadReport> {};

TEST_P(BadReportTest, IsRefused) {
  HistoryBuilder builder;
  ASSERT_TRUE(builder.Add(ATrial()).ok());
  ASSERT_TRUE(builder.Add(AReport(2, 20, 2000)).ok());
  const Status added = builder.Add(GetParam().report);
  ASSERT_FALSE(added.ok());
  EXPECT_THAT(added.error().message, HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, BadReportTest,
    ::testing::Values(
        BadReport{"NegativeEnergy", AReport(3, 30, -1), "energy_joules: must be from 0"},
        BadReport{"LessEnergy", AReport(3, 30, 1999), "energy_joules: 1999 after 2000"},
        BadReport{"EndlessEnergy", AReport(3, 30, 1e308), "energy_joules: must be from 0"},
        BadReport{"NoTime", AReport(3, 0, 3000), "time_seconds: 0 for 3 epochs"},
        BadReport{"LessTime", AReport(3, 19, 3000), "time_seconds: 19 after 20"},
        BadReport{"FewerEpochs", AReport(1, 30, 3000), "epochs: 1 after 2"},
        BadReport{"NegativeEpochs", AReport(-5, 30, 3000), "epochs: must be at least 1: -5"},
        BadReport{"EpochsBeyondTheEnd", AReport(2147483647, 30, 3000), "a run that ended after 4"},
        BadReport{"NoLimit", AReport(3, 30, 3000, 0), "power_limit_watts: must be above 0"},
        BadReport{"NegativeLimit", AReport(3, 30, 3000, -9), "power_limit_watts: must be above"}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(HistoryBuilderTest, TrialsThatCannotBeAreRefused) {
  const auto refused = [](auto change) {
    HistoryBuilder builder;
    Trial trial = ATrial();
    change(trial);
    const Status added = builder.Add(trial);
    return added.ok() ? "" : added.error().message;
  };
  EXPECT_THAT(refused([](Trial& trial) { trial.batch_size = 0; }), HasSubstr("batch_size"));
  EXPECT_THAT(refused([](Trial& trial) { trial.max_power = Watts(0); }),
              HasSubstr("max_power_watts"));
  EXPECT_THAT(refused([](Trial& trial) { trial.epochs = -1; }), HasSubstr("epochs"));
  EXPECT_THAT(refused([](Trial& trial) { trial.time = Seconds(0); }), HasSubstr("time_seconds"));
  EXPECT_THAT(refused([](Trial& trial) { trial.power_limit = Watts(0); }),
              HasSubstr("power_limit_watts"));
}

TEST(HistoryBuilderTest, ATrialIsThereOnce) {
  HistoryBuilder builder;
  ASSERT_TRUE(builder.Add(ATrial()).ok());
  EXPECT_THAT(builder.Add(ATrial()).error().message, HasSubstr("there is a trial 1 already"));
}

TEST(HistoryBuilderTest, WithoutRunsThereIsNothingToReplay) {
  EXPECT_THAT(HistoryBuilder().Finish().error().message, HasSubstr("nothing to replay"));
}

}  // namespace run_history_test
}  // namespace zeus::replay
