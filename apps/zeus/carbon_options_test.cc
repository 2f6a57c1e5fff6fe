#include "apps/zeus/carbon_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/json.h"
#include "zeus/base/testing/scoped_variable.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/base/wall_time_text.h"

namespace zeus::cli {
namespace carbon_options_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// 1 kWh ± 2 % in the first hour of 2024, and a GPU that could not be read.
Measurement OneKilowattHour() {
  Measurement measurement;
  measurement.started = ParseWallTime("2024-01-01T00:00:00Z").value();
  measurement.time = std::chrono::hours(1);
  measurement.devices.push_back({.device = "gpu:0",
                                 .energy = EnergyEstimate{.energy = kOneKilowattHour,
                                                          .sigma = kOneKilowattHour * 0.02,
                                                          .attributed = kOneKilowattHour,
                                                          .source = EnergySource::kCounter,
                                                          .coverage = 1,
                                                          .updates = 36000,
                                                          .update_period = Seconds(0.1),
                                                          .flags = {}}});
  return measurement;
}

class CarbonOptionsTest : public ::testing::Test {
 protected:
  CarbonReport Report(const CarbonOptions& options) {
    auto accounting = CarbonAccounting::Open(clock_, options);
    EXPECT_TRUE(accounting.ok()) << (accounting.ok() ? "" : accounting.error().message);
    return accounting.ok() ? ReportCarbon(accounting.value(), OneKilowattHour()) : CarbonReport();
  }

  std::string Mistake(const CarbonOptions& options) {
    const auto accounting = CarbonAccounting::Open(clock_, options);
    return accounting.ok() ? "" : accounting.error().message;
  }

  SystemClock clock_;
  zeus::testing::TemporaryDirectory directory_;
};

TEST_F(CarbonOptionsTest, NothingAskedIsNothingSaid) {
  const auto accounting = CarbonAccounting::Open(clock_, {});
  ASSERT_TRUE(accounting.ok());
  EXPECT_FALSE(accounting.value().wanted());
  EXPECT_THAT(ToLines(ReportCarbon(accounting.value(), OneKilowattHour())), IsEmpty());
}

TEST_F(CarbonOptionsTest, TakesNumbersWithTheirUnits) {
  const CarbonReport report = Report({.carbon = "350 g/kWh", .price = "0.31EUR"});
  EXPECT_THAT(ToLines(report), ElementsAre("carbon: 350.0 ± 7.0 g CO2e (constant)",
                                           "cost: 0.3100 ± 0.0062 EUR (constant)"));
  EXPECT_EQ(Report({.carbon = "0.35kg/kWh"}).emissions->amount, GramsCo2e(350));
  EXPECT_EQ(Report({.price = "0.31 USD/kWh"}).cost->currency, "USD");
}

TEST_F(CarbonOptionsTest, TakesCountries) {
  const CarbonReport report = Report({.carbon = "de"});
  EXPECT_EQ(report.emissions->amount, GramsCo2e(345));
  EXPECT_THAT(ToLines(report),
              ElementsAre("carbon: 345 ± 35 g CO2e (mean of Germany in 2024 (Ember))"));
}

TEST_F(CarbonOptionsTest, TakesFiles) {
  const auto grid = directory_.AddFile("grid.csv",
                                       "time,grams_per_kwh\n2024-01-01T00:00:00Z,100\n"
                                       "2024-01-01T00:30:00Z,300\n");
  const auto tariff = directory_.AddFile(
      "home.toml",
      "currency = \"EUR\"\ntime_zone = \"Europe/Berlin\"\n[[rate]]\nname = \"all\"\nprice = 0.4\n");
  const CarbonReport report = Report({.carbon = grid, .price = tariff});
  EXPECT_NEAR(report.emissions->amount.value(), 200, 1e-9);
  EXPECT_NEAR(report.cost->amount.value(), 0.4, 1e-12);
  EXPECT_THAT(report.cost->accounted.sources, ElementsAre("home.toml: all"));
}

TEST_F(CarbonOptionsTest, W17WhatIsNotKnownHasAReasonAndTheEnergyIsStillThere) {
  const auto grid = directory_.AddFile("old.csv", "time,grams_per_kwh\n2020-01-01T00:00:00Z,100\n");
  const CarbonReport report = Report({.carbon = grid, .price = "0.31EUR"});
  EXPECT_THAT(ToLines(report), ElementsAre("carbon: not known",
                                           StartsWith("note: old.csv: no value near 2024-01-01"),
                                           StartsWith("cost: 0.31")));
  Json json;
  AddTo(json, report);
  EXPECT_TRUE(json["carbon"]["grams_co2e"].is_null());
  EXPECT_EQ(json["carbon"]["missing_joules"], 3.6e6);
  EXPECT_THAT(json["carbon"]["notes"][0].get<std::string>(), HasSubstr("no value near"));
  EXPECT_EQ(json["cost"]["energy_joules"], 3.6e6);
}

TEST_F(CarbonOptionsTest, NamesTheDevicesThatAreMissing) {
  Measurement measurement = OneKilowattHour();
  measurement.devices.push_back(
      {.device = "gpu:1", .energy = Error{ErrorCode::kUnavailable, "lost"}});
  auto accounting = CarbonAccounting::Open(clock_, {.carbon = "FR"});
  ASSERT_TRUE(accounting.ok());
  EXPECT_THAT(ToLines(ReportCarbon(accounting.value(), measurement)),
              Contains("note: without gpu:1, whose energy is not known"));
}

TEST_F(CarbonOptionsTest, ALiveGridOutOfReachIsReportedWithWhatWasUsedInstead) {
  const zeus::testing::ScopedVariable cache("XDG_CACHE_HOME", directory_.path());
  const auto token = directory_.AddFile("token", "secret\n");
  // No server listens on port 1 of this machine.
  const CarbonReport report = Report({.carbon = "electricity-maps:US-CAL-CISO",
                                      .token_file = token,
                                      .url = "http://127.0.0.1:1/v4"});
  ASSERT_TRUE(report.emissions);
  EXPECT_EQ(report.emissions->amount, GramsCo2e(385));
  EXPECT_THAT(report.emissions->accounted.notes, Contains(HasSubstr("United States")));
  const CarbonReport told = Report({.carbon = "electricity-maps:52.5,13.4",
                                    .fallback = "100g/kWh",
                                    .token_file = token,
                                    .url = "http://127.0.0.1:1/v4"});
  EXPECT_NEAR(told.emissions->amount.value(), 100, 1e-9);
}

TEST_F(CarbonOptionsTest, AWrongValueIsOneSentenceBeforeAnythingIsStarted) {
  EXPECT_THAT(Mistake({.carbon = "350"}), HasSubstr("--carbon: \"350\" is no carbon intensity"));
  EXPECT_THAT(Mistake({.carbon = "-1g/kWh"}), HasSubstr("like 350g/kWh"));
  EXPECT_THAT(Mistake({.carbon = "Atlantis"}), HasSubstr("no country \"Atlantis\""));
  EXPECT_THAT(Mistake({.carbon = "none.csv"}), HasSubstr("none.csv: No such file"));
  EXPECT_THAT(Mistake({.carbon = "electricity-maps:DE"}), HasSubstr("ELECTRICITY_MAPS_TOKEN"));
  EXPECT_THAT(Mistake({.carbon = "electricity-maps:DE", .token_file = "none"}),
              HasSubstr("none: No such file"));
  EXPECT_THAT(Mistake({.carbon = "DE", .token_file = "token"}), HasSubstr("need --carbon"));
  EXPECT_THAT(Mistake({.price = "cheap"}), HasSubstr("--price: \"cheap\" is no price"));
  EXPECT_THAT(Mistake({.price = "0.31"}), HasSubstr("three capital letters"));
  EXPECT_THAT(Mistake({.price = "0.31euro"}), HasSubstr("three capital letters"));
  EXPECT_THAT(Mistake({.price = "none.toml"}), HasSubstr("No such file"));
}

TEST_F(CarbonOptionsTest, TheCommandLineFillsThem) {
  CommandLine line("zeus", "");
  CarbonOptions options;
  AddCarbonOptions(line.program(), options);
  ASSERT_TRUE(line.Parse({"--carbon", "DE", "--price", "0.3EUR", "--carbon-fallback", "FR",
                          "--carbon-token-file", "t"})
                  .ok());
  EXPECT_EQ(options.carbon, "DE");
  EXPECT_EQ(options.price, "0.3EUR");
  EXPECT_EQ(options.fallback, "FR");
  EXPECT_EQ(options.token_file, "t");
}

TEST(CarbonReportTest, AmountsHaveTheDigitsThatTheirDoubtLeaves) {
  const auto line = [](double grams, double sigma) {
    CarbonReport report;
    report.emissions = {.amount = GramsCo2e(grams), .sigma = GramsCo2e(sigma), .accounted = {}};
    report.emissions->accounted.sources = {"x"};
    return ToLines(report).front();
  };
  EXPECT_EQ(line(12.3456, 1.26), "carbon: 12.3 ± 1.3 g CO2e (x)");
  EXPECT_EQ(line(0.012345, 0.0005), "carbon: 12.35 ± 0.50 mg CO2e (x)");
  EXPECT_EQ(line(123456, 1000), "carbon: 123.5 ± 1.0 kg CO2e (x)");
  EXPECT_EQ(line(12.3456, 0), "carbon: 12.3 g CO2e (x)");
  EXPECT_EQ(line(0, 0), "carbon: 0.00 g CO2e (x)");
}

TEST(CarbonReportTest, SaysForHowMuchOfTheEnergyItSpeaks) {
  CarbonReport report;
  report.cost = {.amount = Money(1), .sigma = {}, .currency = "EUR", .accounted = {}};
  report.cost->accounted.sources = {"spot.csv"};
  report.cost->accounted.energy = Joules(3);
  report.cost->accounted.missing = Joules(1);
  EXPECT_EQ(ToLines(report).front(), "cost: 1.00 EUR (spot.csv; for 75 % of the energy)");
}

}  // namespace carbon_options_test
}  // namespace zeus::cli
