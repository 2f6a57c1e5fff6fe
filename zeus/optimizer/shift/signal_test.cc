#include "zeus/optimizer/shift/signal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace zeus {
namespace signal_test {

using std::chrono::hours;
using ::testing::HasSubstr;

constexpr WallTime kBegin = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1);
constexpr double kNone = 0;

Signal Hourly(const std::vector<double>& values, double sigma = kNone) {
  std::vector<Signal::Step> steps;
  for (std::size_t i = 0; i < values.size(); ++i)
    steps.push_back({kBegin + hours(i), values[i], sigma});
  return Signal::Create(steps, kBegin + hours(values.size())).value();
}

PowerPiece Piece(int from, int until, double watts = 1000) {
  return {kBegin + hours(from), kBegin + hours(until), Watts(watts)};
}

TEST(SignalTest, TheIntegralIsTheSumOfItsSteps) {
  const Signal signal = Hourly({100, 300, 200});
  EXPECT_DOUBLE_EQ(signal.Integral(kBegin, kBegin + hours(3)), 600 * 3600.0);
  EXPECT_DOUBLE_EQ(signal.Mean(kBegin, kBegin + hours(3)), 200);
  EXPECT_DOUBLE_EQ(
      signal.Integral(kBegin + std::chrono::minutes(30), kBegin + std::chrono::minutes(90)),
      (50 + 150) * 3600.0);
}

TEST(SignalTest, AKilowattForAnHourCostsTheValue) {
  const std::vector<PowerPiece> pieces{Piece(1, 2)};
  EXPECT_DOUBLE_EQ(Hourly({100, 300, 200}).Cost(pieces), 300);
}

TEST(SignalTest, StepsComeInAnyOrderAndTheLaterOfTwoCounts) {
  const auto signal = Signal::Create({{kBegin + hours(1), 5}, {kBegin, 1}, {kBegin + hours(1), 7}},
                                     kBegin + hours(2));
  EXPECT_DOUBLE_EQ(signal.value().Integral(kBegin, kBegin + hours(2)), 8 * 3600.0);
}

TEST(SignalTest, WhatIsNoNumberIsLeftOutAndCounted) {
  const auto signal = Signal::Create({{kBegin, 1},
                                      {kBegin + hours(1), NAN},
                                      {kBegin + hours(2), HUGE_VAL},
                                      {kBegin + hours(3), 2, NAN}},
                                     kBegin + hours(4));
  EXPECT_EQ(signal.value().left_out(), 3);
  EXPECT_EQ(signal.value().steps().size(), 1);
  EXPECT_THAT(Signal::Create({{kBegin, NAN}}, kBegin + hours(1)).error().message,
              HasSubstr("none of 1 values is a finite number"));
  EXPECT_THAT(Signal::Create({}, kBegin).error().message, HasSubstr("no values"));
}

TEST(SignalTest, StepsBehindItsEndAreNone) {
  EXPECT_FALSE(Signal::Create({{kBegin + hours(2), 1}}, kBegin + hours(1)).ok());
}

TEST(SignalTest, AKnownDayIsRepeatedAndItsErrorIsTheSpread) {
  std::vector<double> day(24, 100);
  day[12] = 340;
  Signal signal = Hourly(day);
  signal.ExtendTo(kBegin + hours(60));
  EXPECT_EQ(signal.known_until(), kBegin + hours(24));
  EXPECT_EQ(signal.end(), kBegin + hours(60));
  EXPECT_DOUBLE_EQ(signal.At(kBegin + hours(36)), 340);
  EXPECT_DOUBLE_EQ(signal.At(kBegin + hours(37)), 100);
  EXPECT_NEAR(signal.steps().back().sigma, std::sqrt((23.0 * 10 * 10 + 230 * 230) / 24), 1e-9);
}

TEST(SignalTest, LessThanADayGoesOnWithItsMean) {
  Signal signal = Hourly({100, 300});
  signal.ExtendTo(kBegin + hours(10));
  EXPECT_DOUBLE_EQ(signal.At(kBegin + hours(9)), 200);
  EXPECT_DOUBLE_EQ(signal.steps().back().sigma, 100);
}

TEST(SignalTest, WhereBothDrawTheSameTheForecastDoesNotMatter) {
  const Signal signal = Hourly({100, 300, 200}, 30);
  const std::vector<PowerPiece> a{Piece(0, 2)};
  const std::vector<PowerPiece> b{Piece(1, 3)};
  EXPECT_EQ(signal.SigmaOfDifference(a, a), 0);
  // Only the first and the third hour differ, with opposite signs.
  const double fade = std::exp(-2.0 / 6);
  EXPECT_NEAR(signal.SigmaOfDifference(a, b), 30 * std::sqrt(2 - 2 * fade), 1e-9);
}

TEST(SignalTest, ErrorsOfNeighboursAddUp) {
  const Signal signal = Hourly({100, 100}, 10);
  const std::vector<PowerPiece> both{Piece(0, 2)};
  EXPECT_NEAR(signal.SigmaOfDifference(both, {}), 10 * std::sqrt(2 + 2 * std::exp(-1.0 / 6)), 1e-9);
}

}  // namespace signal_test
}  // namespace zeus
