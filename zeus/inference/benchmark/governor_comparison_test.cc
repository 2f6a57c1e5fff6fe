#include "zeus/inference/benchmark/governor_comparison.h"

#include <gmock/gmock.h>

#include <cmath>

#include "zeus/base/json.h"

namespace zeus::inference::governor_comparison_test {
namespace {

using ::testing::HasSubstr;

BenchmarkRun MakeRun(const std::string& governor, double joules, double missed) {
  BenchmarkRun run{.governor = governor};
  run.summary.sent = run.summary.finished = 100;
  run.summary.time = Seconds(10);
  run.summary.gpus = EnergySummary{.requests = 100, .total = {joules, 0.01 * joules}};
  run.summary.good_share = Estimate{1 - missed, 0.01};
  return run;
}

TEST(GovernorComparisonTest, SavingsCarryTheErrorsOfBothMeasurements) {
  const BenchReport report{.model = "m",
                           .runs = {MakeRun("on", 700, 0.02), MakeRun("on", 740, 0.04)},
                           .baseline = {MakeRun("off", 1000, 0.01)}};
  const auto comparison = CompareGovernor(report);
  ASSERT_TRUE(comparison.has_value());
  EXPECT_EQ(comparison->energy_source, "gpus");
  ASSERT_TRUE(comparison->saved.has_value());
  EXPECT_NEAR(comparison->saved->value, 0.28, 1e-9);
  // Two runs differ by more than one sensor errs: their standard error counts.
  EXPECT_NEAR(comparison->saved->sigma, 0.72 * std::hypot(20.0 / 720, 0.01), 1e-6);
  EXPECT_NEAR(comparison->present.missed->value, 0.03, 1e-9);
  EXPECT_THAT(FindingOf(*comparison), HasSubstr("28.0 ± 2.1 % less energy than off"));
  EXPECT_THAT(FindingOf(*comparison), HasSubstr("instead of 1.0 ± 1.4 %"));
}

TEST(GovernorComparisonTest, JsonHasBothAndRunsAreThoseOfTheLastMode) {
  const BenchReport report{
      .model = "m", .runs = {MakeRun("on", 700, 0)}, .baseline = {MakeRun("off", 1000, 0)}};
  const Json json = ToJson(report);
  EXPECT_EQ(json["runs"].size(), 1);
  EXPECT_EQ(json["governor"]["baseline_runs"].size(), 1);
  EXPECT_EQ(json["governor"]["modes"][0]["mode"], "off");
  EXPECT_EQ(json["governor"]["modes"][0]["energy_joules"], 1000);
  EXPECT_EQ(json["governor"]["modes"][1]["energy_joules"], 700);
  EXPECT_NEAR(json["governor"]["saved_share"], 0.3, 1e-9);
}

TEST(GovernorComparisonTest, WithoutABaselineThereIsNothingToCompare) {
  const BenchReport report{.model = "m", .runs = {MakeRun("", 700, 0)}};
  EXPECT_FALSE(CompareGovernor(report).has_value());
  EXPECT_FALSE(ToJson(report).contains("governor"));
}

}  // namespace
}  // namespace zeus::inference::governor_comparison_test
