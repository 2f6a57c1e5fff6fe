#include "zeus/carbon/tariff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/testing/temporary_directory.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/carbon/accounting.h"

namespace zeus {
namespace tariff_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kBerlin = R"(
currency = "EUR"
time_zone = "Europe/Berlin"
[[rate]]
name = "winter peak"
months = "11-2"
days = "weekdays"
hours = "17-20:30"
price = 0.50
[[rate]]
name = "night"
hours = "22-6"
price = 0.20
[[rate]]
name = "weekend"
days = "weekend"
price = 0.25
[[rate]]
name = "day"
price = 0.30
)";

WallTime At(const char* text) { return ParseWallTime(text).value(); }

std::unique_ptr<Tariff> Make(const std::string& toml) {
  return Tariff::Parse(toml, "tariff.toml").value();
}

double PriceAt(Tariff& tariff, const char* time) {
  return tariff.At(At(time)).value().tiers.front().price.value();
}

std::string MistakeIn(const std::string& rates) {
  const auto tariff =
      Tariff::Parse("currency = \"EUR\"\ntime_zone = \"UTC\"\n" + rates, "tariff.toml");
  return tariff.ok() ? "" : tariff.error().message;
}

Cost TariffCost(Tariff& tariff, const char* begin, const char* end, KilowattHours energy) {
  return ComputeCost({.pieces = {{At(begin), At(end), ToJoules(energy)}}, .sigma = Joules(0)},
                     tariff);
}

TEST(TariffTest, W18HoursAreThoseOfTheTariffsOwnZone) {
  const auto tariff = Make(kBerlin);
  // 21:30 UTC on a Wednesday in July is 23:30 in Berlin: night. By UTC it would be day.
  EXPECT_EQ(PriceAt(*tariff, "2024-07-03T21:30:00Z"), 0.20);
  EXPECT_EQ(PriceAt(*tariff, "2024-07-03T05:00:00Z"), 0.30);  // 07:00 there.
}

TEST(TariffTest, W18WeekdayAndMonthAreThoseOfTheTariffsOwnZone) {
  const std::string rates = R"(
currency = "USD"
time_zone = "America/New_York"
[[rate]]
days = "sun"
price = 1
[[rate]]
months = "6-6"
price = 2
[[rate]]
price = 3
)";
  const auto tariff = Make(rates);
  EXPECT_EQ(PriceAt(*tariff, "2024-06-03T03:00:00Z"), 1);  // Monday in UTC, Sunday there.
  EXPECT_EQ(PriceAt(*tariff, "2024-07-01T03:59:59Z"), 1);  // 30 June, a Sunday, there.
  EXPECT_EQ(PriceAt(*tariff, "2024-07-01T04:00:00Z"), 3);
  EXPECT_EQ(PriceAt(*tariff, "2024-06-01T03:59:59Z"), 3);  // 31 May there.
  EXPECT_EQ(PriceAt(*tariff, "2024-06-01T04:00:00Z"), 2);
}

TEST(TariffTest, HoursBeginAndEndOnTheDot) {
  const auto tariff = Make(kBerlin);
  EXPECT_EQ(PriceAt(*tariff, "2024-01-10T15:59:59Z"), 0.30);
  EXPECT_EQ(PriceAt(*tariff, "2024-01-10T16:00:00Z"), 0.50);
  EXPECT_EQ(PriceAt(*tariff, "2024-01-10T19:29:59Z"), 0.50);
  EXPECT_EQ(PriceAt(*tariff, "2024-01-10T19:30:00Z"), 0.30);
  EXPECT_EQ(PriceAt(*tariff, "2024-01-10T21:00:00Z"), 0.20);
  EXPECT_EQ(PriceAt(*tariff, "2024-01-11T04:59:59Z"), 0.20);
  EXPECT_EQ(PriceAt(*tariff, "2024-01-11T05:00:00Z"), 0.30);
  EXPECT_EQ(PriceAt(*tariff, "2024-01-13T16:00:00Z"), 0.25);  // Saturday: no peak.
}

TEST(TariffTest, AWindowOverAPriceChangeIsSplitThere) {
  const auto tariff = Make(kBerlin);
  // Half an hour of day and half an hour of night, evenly 2 kWh.
  const Cost cost =
      TariffCost(*tariff, "2024-07-03T19:30:00Z", "2024-07-03T20:30:00Z", KilowattHours(2));
  EXPECT_NEAR(cost.amount.value(), 0.30 + 0.20, 1e-12);
  EXPECT_EQ(cost.currency, "EUR");
  EXPECT_THAT(cost.accounted.sources, ElementsAre("tariff.toml: day", "tariff.toml: night"));
}

TEST(TariffTest, W18TheNightOfTheClockChangeHasAnHourLessOrMore) {
  const auto tariff = Make(R"(
currency = "EUR"
time_zone = "Europe/Berlin"
[[rate]]
hours = "2-3"
price = 1
[[rate]]
price = 0
)");
  const auto night = [&](const char* begin, const char* end, double hours) {
    return TariffCost(*tariff, begin, end, KilowattHours(hours)).amount.value();
  };
  // 1 kW from midnight to six: 2-3 o'clock comes once, never in March, twice in October.
  EXPECT_NEAR(night("2024-03-30T00:00:00+01:00", "2024-03-30T06:00:00+01:00", 6), 1, 1e-9);
  EXPECT_NEAR(night("2024-03-31T00:00:00+01:00", "2024-03-31T06:00:00+02:00", 5), 0, 1e-9);
  EXPECT_NEAR(night("2024-10-27T00:00:00+02:00", "2024-10-27T06:00:00+01:00", 7), 2, 1e-9);
  const auto new_york = Make(R"(
currency = "USD"
time_zone = "America/New_York"
[[rate]]
hours = "1-2"
price = 1
[[rate]]
price = 0
)");
  EXPECT_NEAR(TariffCost(*new_york, "2024-11-03T00:00:00-04:00", "2024-11-03T06:00:00-05:00",
                         KilowattHours(7))
                  .amount.value(),
              2, 1e-9);
}

TEST(TariffTest, W18TiersBeyondTheFirstAndAdjustmentsCount) {
  const auto tariff = Make(R"(
currency = "EUR"
time_zone = "UTC"
already_used_kwh = 90
adjustment = 0.01
[[rate]]
adjustment = 0.02
tiers = [{up_to_kwh = 100, price = 0.10}, {up_to_kwh = 120, price = 0.20}, {price = 0.40}]
)");
  const Cost cost =
      TariffCost(*tariff, "2024-07-03T00:00:00Z", "2024-07-04T00:00:00Z", KilowattHours(50));
  EXPECT_NEAR(cost.amount.value(), 10 * 0.13 + 20 * 0.23 + 20 * 0.43, 1e-9);
}

TEST(TariffTest, RefusesWhatLeavesAMomentWithoutARate) {
  EXPECT_THAT(MistakeIn("[[rate]]\nhours = \"6-22\"\nprice = 1\n"),
              HasSubstr("no rate holds on a sunday in month 1 at 00:00"));
  EXPECT_THAT(MistakeIn("[[rate]]\nmonths = \"1-11\"\nprice = 1\n"), HasSubstr("month 12"));
  EXPECT_EQ(MistakeIn("[[rate]]\nhours = \"6-22\"\nprice = 1\n[[rate]]\nhours = "
                      "\"22:00-06:00\"\nprice = 2\n"),
            "");
}

TEST(TariffTest, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(MistakeIn("[[rate]\n"), HasSubstr("tariff.toml:3: "));
  EXPECT_THAT(MistakeIn(""), HasSubstr("there is no [[rate]]"));
  EXPECT_THAT(MistakeIn("[[rate]]\nprize = 1\n"), HasSubstr("rate 1: \"prize\" is not known here"));
  EXPECT_THAT(MistakeIn("[[rate]]\nprice = \"1\"\n"), HasSubstr("price must be a number"));
  EXPECT_THAT(MistakeIn("[[rate]]\nprice = nan\n"), HasSubstr("price must be a number"));
  EXPECT_THAT(MistakeIn("[[rate]]\nprice = 1\nhours = \"25-3\"\n"), HasSubstr("\"25\""));
  EXPECT_THAT(MistakeIn("[[rate]]\nprice = 1\nhours = \"3-3\"\n"), HasSubstr("empty"));
  EXPECT_THAT(MistakeIn("[[rate]]\nprice = 1\nmonths = \"0-3\"\n"), HasSubstr("\"0-3\""));
  EXPECT_THAT(MistakeIn("[[rate]]\nprice = 1\ndays = \"moonday\"\n"), HasSubstr("\"moonday\""));
  EXPECT_THAT(MistakeIn("[[rate]]\ntiers = [{up_to_kwh = 5, price = 1}]\n"),
              HasSubstr("the last tier"));
  EXPECT_THAT(MistakeIn("[[rate]]\ntiers = [{price = 1}, {price = 2}]\n"), HasSubstr("rise"));
  EXPECT_THAT(Tariff::Parse("currency = \"EUR\"\n[[rate]]\nprice = 1\n", "t").error().message,
              HasSubstr("time_zone is missing: write time_zone = \"Europe/Berlin\""));
  EXPECT_THAT(Tariff::Parse("currency = \"EUR\"\ntime_zone = 1\n[[rate]]\nprice = 1\n", "t")
                  .error()
                  .message,
              HasSubstr("time_zone must be a text"));
}

TEST(PriceSeriesTest, ExchangePricesMayBeNegativeAndNameTheirCurrency) {
  zeus::testing::TemporaryDirectory directory;
  const auto path = directory.AddFile(
      "spot.csv", "time,EUR_per_kwh\n2024-01-01T00:00:00Z,0.10\n2024-01-01T01:00:00Z,-0.02\n");
  const auto prices = PriceSeries::Load(path);
  ASSERT_TRUE(prices.ok());
  EXPECT_EQ(prices.value()->currency(), "EUR");
  const Cost cost = ComputeCost(
      {.pieces = {{At("2024-01-01T00:00:00Z"), At("2024-01-01T02:00:00Z"), 2 * kOneKilowattHour}},
       .sigma = 0.2 * kOneKilowattHour},
      *prices.value());
  EXPECT_NEAR(cost.amount.value(), 0.08, 1e-12);
  EXPECT_NEAR(cost.sigma.value(), 0.008, 1e-12);
  const auto wrong = directory.AddFile("wrong.csv", "time,price\n1,2\n");
  EXPECT_THAT(PriceSeries::Load(wrong).error().message, HasSubstr("EUR_per_kwh"));
}

}  // namespace tariff_test
}  // namespace zeus
