#include "zeus/replay/cluster/cluster_report.h"

#include <gmock/gmock.h>

#include "zeus/base/json.h"
#include "zeus/replay/cluster/testing/made_jobs.h"

namespace zeus::replay {
namespace cluster_report_test {

using ::testing::HasSubstr;
using ::testing::Not;

// Two replays of one job; `default` uses 10 J and 1 s in each.
ClusterComparison Comparison(ReplayJob job) {
  const auto totals = [](double energy) {
    return ClusterTotals{
        .jobs = 2,
        .runs = 3,
        .retries = 1,
        .ratios = 2,
        .usage = {.time = Seconds(1), .energy = Joules(energy), .cost = Joules(energy)}};
  };
  return {.source = "made up",
          .contenders = {"default", "zeus"},
          .jobs = {std::move(job)},
          .statistics = {.jobs = 2, .groups = 1},
          .replays = {
              {{.workload = "neumf", .contenders = {totals(10), totals(5)}, .scatter = {{}, {}}}},
              {{.workload = "neumf", .contenders = {totals(10), totals(7)}, .scatter = {{}, {}}}}}};
}

TEST(ClusterReportTest, ComparesWithTheDefaultOfTheSameReplay) {
  const Json json = ToJson(Comparison(testing::MadeClusterJob("neumf", Seconds(1))));
  const Json& zeus = json["policies"]["zeus"]["workloads"]["neumf"];
  EXPECT_DOUBLE_EQ(zeus["energy_vs_default"], 0.6);
  EXPECT_NEAR(zeus["energy_vs_default_sd"].get<double>(), 0.1414, 1e-4);
  EXPECT_EQ(zeus["time_vs_default"], 1.0);
  EXPECT_EQ(zeus["jobs"], 2);
  EXPECT_EQ(json["policies"]["default"]["total"]["energy_vs_default"], 1.0);
}

TEST(ClusterReportTest, RegretIsCountedInCostsOfTheOracle) {
  const ReplayJob job = testing::MadeClusterJob("neumf", Seconds(1));
  ClusterComparison comparison = Comparison(job);
  for (auto& replay : comparison.replays)
    replay[0].contenders[1].usage.cost = 2.5 * job.OracleCost();
  const Json json = ToJson(comparison);
  EXPECT_NEAR(json["policies"]["zeus"]["total"]["regret"].get<double>(), 0.5, 1e-12);
  EXPECT_NEAR(json["policies"]["zeus"]["total"]["cost_vs_oracle"].get<double>(), 1.25, 1e-12);
}

TEST(ClusterReportTest, WithoutAnOracleThereIsNoRegret) {
  const Json json = ToJson(Comparison(testing::HopelessJob()));
  EXPECT_TRUE(json["policies"]["zeus"]["total"]["regret"].is_null());
  EXPECT_TRUE(json["policies"]["zeus"]["total"]["cost_vs_oracle"].is_null());
  EXPECT_DOUBLE_EQ(json["policies"]["zeus"]["total"]["energy_vs_default"], 0.6);
}

TEST(ClusterReportTest, ASingleReplayHasNoSpread) {
  ClusterComparison comparison = Comparison(testing::MadeClusterJob("neumf", Seconds(1)));
  comparison.replays.pop_back();
  EXPECT_FALSE(ToJson(comparison)["policies"]["zeus"]["total"].contains("regret_sd"));
}

TEST(ClusterReportTest, ASavingHasASigmaByTheScatterBetweenGroups) {
  ClusterComparison comparison = Comparison(testing::MadeClusterJob("neumf", Seconds(1)));
  comparison.replays.pop_back();
  EXPECT_TRUE(ToJson(comparison)["policies"]["zeus"]["total"]["saved"].is_null());
  EXPECT_THAT(ToReport(comparison).findings[0], HasSubstr("What zeus saves is not known"));
  // The groups use 4 J and 6 J by default and 1 J and 4 J with zeus, so the residuals are -1 and 1.
  EnergyScatter& scatter = comparison.replays[0][0].scatter[1];
  scatter.Add(Joules(1), Joules(4));
  scatter.Add(Joules(4), Joules(6));
  const Json saved = ToJson(comparison)["policies"]["zeus"]["total"]["saved"];
  EXPECT_DOUBLE_EQ(saved["energy_percent"], 50);
  EXPECT_NEAR(saved["energy_sigma_percent"].get<double>(), 20, 1e-9);
  EXPECT_NEAR(saved["energy_joules"].get<double>(), 5, 1e-12);
  EXPECT_NEAR(saved["energy_sigma_joules"].get<double>(), 2, 1e-9);
  EXPECT_THAT(ToReport(comparison).findings[0],
              HasSubstr("zeus uses 50 ± 20 % less energy than default"));
}

TEST(ClusterReportTest, PeopleGetTheSentenceTheTableAndTheFigure) {
  const report::Report report = ToReport(Comparison(testing::MadeClusterJob("neumf", Seconds(1))));
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_THAT(report.findings[0], HasSubstr("zeus uses 40.0 ± 10.0 % less energy than default"));
  const report::Table& table = report.sections[0].tables[0];
  ASSERT_EQ(table.rows.size(), 4U) << "two policies, one workload and all";
  EXPECT_EQ(table.rows[2][5].text, "0.600 ± 0.141");
  const report::Figure& figure = report.sections[0].figures[0];
  ASSERT_EQ(figure.panels.size(), 3U);
  EXPECT_EQ(figure.panels[0].series.size(), 2U);
  EXPECT_EQ(figure.panels[0].series[1].y[0], 0.6);
}

TEST(ClusterReportTest, NobodyIsSaidToSaveWithoutTheJobsThatDidNotReachTheTarget) {
  ClusterComparison comparison = Comparison(testing::MadeClusterJob("neumf", Seconds(1)));
  EXPECT_THAT(ToReport(comparison).findings[0], Not(HasSubstr("target")));
  for (auto& replay : comparison.replays) replay[0].contenders[0].unfinished = 1;
  const report::Report report = ToReport(comparison);
  EXPECT_THAT(report.findings[0],
              HasSubstr(", and 0 of 2 jobs with zeus and 1 with default did not reach the target"));
  EXPECT_EQ(report.sections[0].tables[0].rows[0].back().text, "1");
}

TEST(ClusterReportTest, OneThatTakesManyTimesAsMuchDoesNotFlattenTheOthers) {
  ClusterComparison comparison = Comparison(testing::MadeClusterJob("neumf", Seconds(1)));
  EXPECT_FALSE(SavingsFigure(comparison).panels[0].y.logarithmic);
  comparison.replays[0][0].contenders[1].usage.energy = Joules(500);
  EXPECT_TRUE(SavingsFigure(comparison).panels[0].y.logarithmic);
}

}  // namespace cluster_report_test
}  // namespace zeus::replay
