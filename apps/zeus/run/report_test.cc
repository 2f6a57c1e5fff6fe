#include "apps/zeus/run/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "apps/zeus/run/run_meter.h"
#include "apps/zeus/run/session.h"
#include "zeus/base/json.h"

namespace zeus::cli {
namespace report_test {

using namespace std::chrono_literals;
using namespace literals;
using ::testing::HasSubstr;
using ::testing::Not;

EnergyEstimate Estimate(Joules energy, Joules sigma) {
  return {.energy = energy,
          .sigma = sigma,
          .attributed = energy / 2,
          .source = EnergySource::kCounter,
          .coverage = 1,
          .updates = 20,
          .update_period = 100ms,
          .flags = {}};
}

Run RunWith(Joules energy, Seconds time) {
  Run run;
  run.measurement.time = time;
  run.measurement.devices = {
      {.device = "gpu:0", .energy = Estimate(energy, energy * 0.02), .in_total = true},
      {.device = "gpu:1", .energy = Error{ErrorCode::kUnavailable, "GPU is lost"}}};
  return run;
}

RunReport ReportWith(std::vector<Run> runs) {
  RunReport report;
  report.command = {"train", "--fast"};
  report.host = "here";
  report.devices = {{"gpu:0", "A100", "GPU-1"}, {"gpu:1", "A100", "GPU-2"}};
  if (runs.size() > 1) report.planned_runs = static_cast<unsigned>(runs.size());
  report.runs = std::move(runs);
  return report;
}

TEST(RunReportTest, ADeviceWithoutANumberHasNullsAndAReason) {
  const Json json = ToJson(ReportWith({RunWith(100_J, 2s)}));
  const Json& lost = json["devices"][1];
  EXPECT_EQ(lost["reason"], "GPU is lost");
  for (const char* field : {"energy_joules", "energy_sigma_joules", "attributed_joules",
                            "average_power_watts", "source", "coverage", "updates"})
    EXPECT_TRUE(lost.contains(field) && lost[field].is_null()) << field;
  EXPECT_EQ(json["total"]["missing"], Json({"gpu:1"}));
  EXPECT_EQ(json["total"]["average_power_watts"], 50);
  EXPECT_FALSE(json.contains("runs"));
}

TEST(RunReportTest, TheTopOfARepeatedReportIsTheMean) {
  const Json json = ToJson(ReportWith({RunWith(100_J, 1s), RunWith(300_J, 3s)}));
  EXPECT_EQ(json["time_seconds"], 2);
  EXPECT_EQ(json["devices"][0]["energy_joules"], 200);
  EXPECT_EQ(json["summary"]["total_energy_joules"]["mean"], 200);
  EXPECT_NEAR(json["summary"]["total_energy_joules"]["standard_deviation"].get<double>(), 141.42,
              0.01);
  EXPECT_EQ(json["runs"].size(), 2U);
}

TEST(RunReportTest, NetEnergyIsAboveIdleAndCarriesBothUncertainties) {
  RunReport report = ReportWith({RunWith(100_J, 2s)});
  report.idle = {{"gpu:0", 20_W, 1_W}};
  const Json json = ToJson(report);
  EXPECT_EQ(json["devices"][0]["net_energy_joules"], 60);
  EXPECT_NEAR(json["devices"][0]["net_energy_sigma_joules"].get<double>(), std::hypot(2.0, 2.0),
              1e-12);
  EXPECT_EQ(json["total"]["net_contains"], Json({"gpu:0"}));
  EXPECT_FALSE(json["devices"][1].contains("net_energy_joules"));
}

TEST(RunReportTest, TheTableShowsAttributedEnergyOnlyWhereDevicesAreShared) {
  RunReport report = ReportWith({RunWith(100_J, 2s)});
  EXPECT_THAT(ToTable(report), Not(HasSubstr("of this command")));
  report.runs[0].measurement.devices[0].energy.value().flags.Set(MeasurementFlag::kShared);
  const std::string table = ToTable(report);
  EXPECT_THAT(table, HasSubstr("of this command"));
  EXPECT_THAT(table, HasSubstr("50.0 J"));
  EXPECT_THAT(table, HasSubstr("gpu:1: not measured: GPU is lost"));
}

TEST(RunReportTest, LargeEnergiesAreInKilojoules) {
  EXPECT_THAT(ToTable(ReportWith({RunWith(99000_J, 60s)})), HasSubstr("99.0 ± 2.0 kJ"));
  EXPECT_THAT(ToTable(ReportWith({RunWith(1234500_J, 60s)})), HasSubstr("1.234 ± 0.025 MJ"));
}

TEST(RunReportTest, RemarksAreUnderTheTable) {
  RunReport report = ReportWith({RunWith(100_J, 2s)});
  report.carbon =
      CarbonReport{.emissions = std::nullopt, .cost = std::nullopt, .notes = {"stale values"}};
  EXPECT_THAT(ToTable(report), HasSubstr("\n  note: stale values\n"));
}

TEST(RunReportTest, WithoutEnergyThereIsNoCarbon) {
  RunReport report = ReportWith({RunWith(100_J, 2s)});
  report.runs[0].measurement.devices.clear();
  report.carbon =
      CarbonReport{.emissions = std::nullopt, .cost = std::nullopt, .notes = {"stale values"}};
  EXPECT_THAT(ToTable(report), HasSubstr("no energy: no sensor could be read here"));
  EXPECT_THAT(ToTable(report), Not(HasSubstr("stale values")));
}

TEST(RunReportTest, CsvQuotesWhatNeedsIt) {
  RunReport report = ReportWith({RunWith(100_J, 2s)});
  report.command = {"echo", "a,\"b\""};
  EXPECT_THAT(ToCsv(report, 0), HasSubstr(",\"echo a,\"\"b\"\"\",1,0,2,gpu:0,GPU-1,100,"));
}

TEST(WorthRefiningTest, OnlyWindowsBetweenAFewAndAThousandUpdates) {
  EXPECT_FALSE(WorthRefining(RunWith(1_J, 5ms).measurement));
  EXPECT_TRUE(WorthRefining(RunWith(100_J, 2s).measurement));
  EXPECT_FALSE(WorthRefining(RunWith(1000_J, 3600s).measurement));
}

TEST(CooldownTest, EndsAtTheTemperatureOfTheStart) {
  Cooldown cooldown({40_degC, 42_degC});
  const TimePoint begin{};
  EXPECT_FALSE(cooldown.MayBegin(begin, {60_degC, 43_degC}));
  EXPECT_FALSE(cooldown.MayBegin(begin + 1s, {42_degC, 43_degC}));
  EXPECT_TRUE(cooldown.MayBegin(begin + 2s, {41_degC, 43_degC}));
}

TEST(CooldownTest, EndsWhenNothingGetsCooler) {
  Cooldown cooldown({40_degC});
  const TimePoint begin{};
  for (int second = 0; second <= 30; ++second)  // Half a degree per second.
    EXPECT_FALSE(cooldown.MayBegin(begin + Seconds(second), {Celsius(65 - 0.5 * second)}));
  for (int second = 31; second < 51; ++second)
    EXPECT_FALSE(cooldown.MayBegin(begin + Seconds(second), {48_degC})) << second;
  EXPECT_TRUE(cooldown.MayBegin(begin + 51s, {48_degC}));
}

TEST(CooldownTest, WithoutTemperaturesThereIsNothingToWaitFor) {
  EXPECT_TRUE(Cooldown({}).MayBegin(TimePoint{}, {}));
}

TEST(RunReportTest, BothPartsOfTheUncertaintyAreExplained) {
  auto run = RunWith(100_J, 2s);
  EnergyEstimate estimate = Estimate(100_J, 5_J);
  estimate.shared_sigma = 3_J;
  estimate.flags.Set(MeasurementFlag::kThrottled);
  run.measurement.devices[0].energy = estimate;
  RunReport report = ReportWith({run});
  const std::string prior = ToExplanation(report);
  EXPECT_THAT(prior, HasSubstr("± 5.00 J = ± 3.00 J of the sensor itself"));
  EXPECT_THAT(prior, HasSubstr("and ± 4.00 J of this run"));
  EXPECT_THAT(prior, HasSubstr("published measurements"));
  EXPECT_THAT(prior, HasSubstr("20 new values of the sensor in that time, which shows one every"));
  EXPECT_THAT(prior, HasSubstr("flag throttled: the device slowed itself down"));
  EXPECT_THAT(prior, HasSubstr("no number: GPU is lost"));
  EXPECT_THAT(prior, HasSubstr("total: the sum of gpu:0, without gpu:1"));
  report.devices[0].calibrated = true;
  EXPECT_THAT(ToExplanation(report), HasSubstr("measured on this board by zeus calibrate"));
}

}  // namespace report_test
}  // namespace zeus::cli
