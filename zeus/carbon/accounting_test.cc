#include "zeus/carbon/accounting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "zeus/base/wall_time_text.h"
#include "zeus/carbon/country_intensity.h"
#include "zeus/carbon/step_series.h"

namespace zeus {
namespace accounting_test {

using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const WallTime kNoon = ParseWallTime("2024-01-01T12:00:00Z").value();

// 100 g/kWh, 200, 300, …, by the hour from noon.
IntensitySeries Rising(int rows) {
  std::vector<StepSeries::Row> list;
  for (int i = 0; i < rows; ++i) list.push_back({kNoon + hours(i), 100.0 * (i + 1)});
  return {"grid", StepSeries(list, {.reach = hours(1)})};
}

TEST(QuantitiesTest, AKilowattHourIsThreePointSixMegajoules) {
  EXPECT_EQ(ToKilowattHours(Joules::FromMega(7.2)), KilowattHours(2));
  EXPECT_EQ(ToJoules(KilowattHours(0.5)), Joules::FromMega(1.8));
  EXPECT_EQ(Joules::FromMega(3.6) * CarbonIntensity(380), GramsCo2e(380));
  EXPECT_EQ(Joules::FromMega(3.6) * UnitPrice(0.3), Money(0.3));
}

TEST(AccountingTest, EnergyIsSpreadEvenlyAndCutAtTheHours) {
  IntensitySeries grid = Rising(3);
  // Half an hour at 100, an hour at 200, half an hour at 300.
  const EnergyUse use{.pieces = {{kNoon + std::chrono::minutes(30),
                                  kNoon + std::chrono::minutes(150), 4 * kOneKilowattHour}},
                      .sigma = Joules(0)};
  const Emissions emissions = ComputeEmissions(use, grid);
  EXPECT_NEAR(emissions.amount.value(), 1 * 100 + 2 * 200 + 1 * 300, 1e-9);
  EXPECT_TRUE(emissions.accounted.complete());
  EXPECT_THAT(emissions.accounted.sources, ElementsAre("grid"));
  EXPECT_THAT(emissions.accounted.notes, IsEmpty());
}

TEST(AccountingTest, ATimeLinePutsTheEnergyWhereItWasUsed) {
  IntensitySeries grid = Rising(2);
  const EnergyUse use{.pieces = {{kNoon, kNoon + hours(1), 3 * kOneKilowattHour},
                                 {kNoon + hours(1), kNoon + hours(2), kOneKilowattHour}},
                      .sigma = Joules(0)};
  EXPECT_NEAR(ComputeEmissions(use, grid).amount.value(), 3 * 100 + 1 * 200, 1e-9);
}

TEST(AccountingTest, W20CuttingLosesNothingAtAConstantIntensity) {
  // The reference lost what was used while its helper started and before its last reading.
  std::vector<StepSeries::Row> rows;
  for (int i = 0; i < 500; ++i) rows.push_back({kNoon + std::chrono::minutes(7 * i), 400});
  IntensitySeries grid("grid", StepSeries(rows));
  ConstantIntensity constant(CarbonIntensity(400));
  const EnergyUse use{
      .pieces = {{kNoon + std::chrono::seconds(11), kNoon + hours(48), Joules(1234567.89)}},
      .sigma = Joules(0)};
  const Emissions cut = ComputeEmissions(use, grid);
  EXPECT_NEAR(cut.amount.value(), (use.Sum() * CarbonIntensity(400)).value(), 1e-9);
  EXPECT_EQ(ComputeEmissions(use, constant).amount, use.Sum() * CarbonIntensity(400));
  EXPECT_NEAR(cut.accounted.energy.value(), use.Sum().value(), 1e-6);
}

TEST(AccountingTest, PartsOfAWindowAddUpToTheWhole) {
  IntensitySeries grid = Rising(6);
  const auto emissions = [&](WallTime begin, WallTime end, Joules energy) {
    return ComputeEmissions({.pieces = {{begin, end, energy}}, .sigma = Joules(0)}, grid).amount;
  };
  const auto middle = kNoon + std::chrono::minutes(95);
  const Joules hourly = kOneKilowattHour;
  const GramsCo2e whole = emissions(kNoon, kNoon + hours(5), 5 * hourly);
  const GramsCo2e parts = emissions(kNoon, middle, hourly * (95 / 60.0)) +
                          emissions(middle, kNoon + hours(5), hourly * (205 / 60.0));
  EXPECT_NEAR(whole.value(), parts.value(), 1e-9);
}

TEST(AccountingTest, W17EnergyWithoutAnIntensityIsNamedAndTheRestIsCounted) {
  IntensitySeries grid = Rising(1);  // One hour, and an hour of reach to both sides.
  const EnergyUse use{.pieces = {{kNoon - hours(2), kNoon + hours(3), 5 * kOneKilowattHour}},
                      .sigma = Joules(0)};
  const Emissions emissions = ComputeEmissions(use, grid);
  EXPECT_NEAR(emissions.amount.value(), 3 * 100, 1e-9);
  EXPECT_NEAR(ToKilowattHours(emissions.accounted.missing).value(), 2, 1e-9);
  EXPECT_FALSE(emissions.accounted.complete());
  EXPECT_THAT(emissions.accounted.notes, ::testing::Contains(HasSubstr("grid: no value near")));
  EXPECT_THAT(emissions.accounted.notes, ::testing::Contains(HasSubstr("no value before")));
}

TEST(AccountingTest, AWindowWithoutDurationCountsToo) {
  ConstantIntensity constant(CarbonIntensity(400));
  const EnergyUse use{.pieces = {{kNoon, kNoon, kOneKilowattHour}}, .sigma = Joules(0)};
  EXPECT_EQ(ComputeEmissions(use, constant).amount, GramsCo2e(400));
}

TEST(AccountingTest, NothingUsedIsNothingEmitted) {
  ConstantIntensity constant(CarbonIntensity(400));
  const Emissions emissions = ComputeEmissions({}, constant);
  EXPECT_EQ(emissions.amount, GramsCo2e(0));
  EXPECT_EQ(emissions.sigma, GramsCo2e(0));
}

TEST(AccountingTest, DoubtsAboutEnergyAndIntensityAddInSquares) {
  CountryAverage germany(*FindCountry("DE").value());  // ± 10 %
  const EnergyUse use{.pieces = {{kNoon, kNoon + hours(1), kOneKilowattHour}},
                      .sigma = kOneKilowattHour * 0.05};
  const Emissions emissions = ComputeEmissions(use, germany);
  EXPECT_NEAR(emissions.sigma / emissions.amount, std::hypot(0.1, 0.05), 1e-12);
  EXPECT_TRUE(emissions.accounted.estimated);
}

}  // namespace accounting_test
}  // namespace zeus
