#include "zeus/carbon/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "zeus/carbon/country_intensity.h"
#include "zeus/carbon/step_series.h"
#include "zeus/carbon/tariff.h"

namespace zeus {
namespace forecast_test {

using std::chrono::days;
using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr WallTime kNow = std::chrono::sys_days(std::chrono::year(2026) / 3 / 28) + hours(12);

IntensitySeries Series(const std::vector<StepSeries::Row>& rows) {
  return {"grid.csv", StepSeries(rows)};
}

TEST(ForecastTest, FutureRowsOfAFileAreAForecast) {
  IntensitySeries series =
      Series({{kNow - hours(1), 100}, {kNow + hours(1), 200}, {kNow + hours(2), 300}});
  const auto forecast = ForecastOf(series, kNow, kNow + hours(24), 0.1);
  ASSERT_TRUE(forecast.ok()) << forecast.error().message;
  const Signal& signal = forecast.value().signal;
  EXPECT_EQ(signal.begin(), kNow);
  EXPECT_EQ(signal.end(), kNow + hours(3));
  EXPECT_DOUBLE_EQ(signal.Integral(kNow, kNow + hours(3)), (100 + 200 + 300) * 3600.0);
  EXPECT_DOUBLE_EQ(signal.steps()[1].sigma, 20);
  EXPECT_FALSE(forecast.value().assumed);
  EXPECT_THAT(forecast.value().notes, ElementsAre("grid.csv ends at 2026-03-28T15:00:00Z"));
}

TEST(ForecastTest, AFileWithAPastOnlyGivesTheMeanOfItsDays) {
  std::vector<StepSeries::Row> rows;
  for (int i = 3 * 24; i > 0; --i) {
    const WallTime time = kNow - hours(i);
    const auto hour = std::chrono::duration_cast<hours>(time - std::chrono::floor<days>(time));
    rows.push_back({time, hour == hours(15) ? 50.0 + 10 * (i / 24) : 200.0});
  }
  IntensitySeries series = Series(rows);
  const auto forecast = ForecastOf(series, kNow + hours(1), kNow + hours(49), 0.1);
  ASSERT_TRUE(forecast.ok()) << forecast.error().message;
  EXPECT_TRUE(forecast.value().assumed);
  EXPECT_DOUBLE_EQ(forecast.value().signal.At(kNow + hours(3)), 60);
  EXPECT_DOUBLE_EQ(forecast.value().signal.At(kNow + hours(27)), 60);
  EXPECT_NEAR(forecast.value().signal.steps()[2].sigma, 10, 1e-9);
  EXPECT_THAT(forecast.value().notes, ElementsAre(HasSubstr("is assumed")));
}

TEST(ForecastTest, AnOldFileIsNoForecast) {
  IntensitySeries series = Series({{kNow - days(40), 100}, {kNow - days(39), 100}});
  const auto forecast = ForecastOf(series, kNow, kNow + hours(24), 0.1);
  ASSERT_FALSE(forecast.ok());
  EXPECT_THAT(forecast.error().message, HasSubstr("no value near"));
}

TEST(ForecastTest, ACountryIsTheSameAtAllHours) {
  CountryAverage germany(*FindCountry("DE").value());
  const auto forecast = ForecastOf(germany, kNow, kNow + days(2), 0.1);
  EXPECT_EQ(forecast.value().signal.steps().size(), 1);
  EXPECT_EQ(forecast.value().signal.end(), kNow + days(2));
}

// In the night to 29 March 2026 Berlin has no hour from two to three.
TEST(ForecastTest, ATariffIsKnownThroughAChangeOfClocks) {
  const auto tariff = Tariff::Parse(R"(
    currency = "EUR"
    time_zone = "CET-1CEST,M3.5.0,M10.5.0/3"
    [[rate]]
    name = "night"
    hours = "22-6"
    price = 0.20
    [[rate]]
    name = "day"
    price = 0.30)",
                                    "tariff.toml");
  ASSERT_TRUE(tariff.ok()) << tariff.error().message;
  const auto forecast = ForecastOf(*tariff.value(), kNow, kNow + hours(24), 0);
  ASSERT_TRUE(forecast.ok());
  const Signal& signal = forecast.value().signal;
  // The night begins at 21:00 UTC (still CET) and ends at 4:00 UTC (CEST already): seven hours.
  EXPECT_DOUBLE_EQ(signal.At(kNow + hours(9) - std::chrono::minutes(1)), 0.30);
  EXPECT_DOUBLE_EQ(signal.At(kNow + hours(9)), 0.20);
  EXPECT_DOUBLE_EQ(signal.At(kNow + hours(16)), 0.30);
  EXPECT_NEAR(signal.Integral(kNow, kNow + hours(24)) / 3600, 7 * 0.20 + 17 * 0.30, 1e-9);
  EXPECT_EQ(signal.steps()[0].sigma, 0);
  EXPECT_THAT(forecast.value().notes, IsEmpty());
}

TEST(ForecastTest, PricesInTiersCountWithTheTierThatIsReached) {
  const auto tariff = Tariff::Parse(R"(
    currency = "EUR"
    time_zone = "UTC"
    already_used_kwh = 1500
    [[rate]]
    name = "all"
    tiers = [{up_to_kwh = 1000, price = 0.30}, {price = 0.34}])",
                                    "tariff.toml");
  ASSERT_TRUE(tariff.ok()) << tariff.error().message;
  const auto forecast = ForecastOf(*tariff.value(), kNow, kNow + hours(24), 0);
  EXPECT_DOUBLE_EQ(forecast.value().signal.At(kNow), 0.34);
  EXPECT_THAT(forecast.value().notes, ElementsAre(HasSubstr("tier")));
}

TEST(ForecastTest, NegativePricesStayNegative) {
  PriceSeries series("spot.csv", "EUR",
                     StepSeries({{kNow, -0.05}, {kNow + hours(1), 0.1}, {kNow + hours(2), 0.2}}));
  const auto forecast = ForecastOf(series, kNow, kNow + hours(3), 0.1);
  EXPECT_DOUBLE_EQ(forecast.value().signal.At(kNow), -0.05);
  EXPECT_DOUBLE_EQ(forecast.value().signal.steps()[0].sigma, 0.005);
}

TEST(ForecastTest, WithoutAnyDayThereIsNoMean) {
  const auto none = [](WallTime) { return std::optional<double>(); };
  EXPECT_THAT(MeanOfLastDays(none, kNow, kNow + hours(1)).error().message,
              HasSubstr("in the last 10 days"));
  const auto nan = [](WallTime) { return std::optional<double>(NAN); };
  EXPECT_FALSE(MeanOfLastDays(nan, kNow, kNow + hours(1)).ok());
}

}  // namespace forecast_test
}  // namespace zeus
