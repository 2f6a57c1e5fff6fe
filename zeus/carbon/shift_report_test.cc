#include "zeus/carbon/shift_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus {
namespace shift_report_test {

using std::chrono::hours;
using ::testing::HasSubstr;

class ShiftReportTest : public ::testing::Test {
 protected:
  // The first hour has 400 g/kWh, the next two 100.
  CarbonAccounting Open() {
    directory_.AddFile("grid.csv",
                       "time,grams_per_kwh\n1681689600,400\n1681693200,100\n1681696800,100\n");
    return CarbonAccounting::Open(clock_, {.carbon = (directory_.path() / "grid.csv").string()})
        .value();
  }
  WallTime At(int hour) const { return clock_.WallNow() + hours(hour); }
  EnergyPiece Piece(int from, int until) const {
    return {At(from), At(until), 3.6e6 * (until - from) * Joules(1)};
  }

  zeus::testing::TemporaryDirectory directory_;
  VirtualClock clock_;  // Begins on 2023-04-17 at midnight, 1681689600.
};

TEST_F(ShiftReportTest, JudgesByWhatCame) {
  const CarbonAccounting accounting = Open();
  ShiftReport report = JudgeShift(accounting, ShiftGoal::kCarbon, At(0),
                                  {.pieces = {Piece(1, 2)}, .sigma = Joules(3.6e4)});
  ASSERT_TRUE(report.saved);
  EXPECT_DOUBLE_EQ(report.actual->value, 100);
  EXPECT_DOUBLE_EQ(report.at_once->value, 400);
  EXPECT_DOUBLE_EQ(report.saved->value, 300);
  EXPECT_DOUBLE_EQ(report.saved->sigma, 3);
  report.promised_percent = 80;
  EXPECT_EQ(ToSentence(report),
            "the run began 60.0 min later: 100.0 ± 1.0 g CO2e instead of 400.0 ± 4.0 g CO2e at "
            "the first moment, -75.00 ± 0.75 % (the forecast promised -80.0 %)");
  EXPECT_EQ(ToJson(report).at("saved").at("amount"), 300);
}

TEST_F(ShiftReportTest, ALossIsToldAsALoss) {
  const CarbonAccounting accounting = Open();
  directory_.AddFile("up.csv", "time,grams_per_kwh\n1681689600,100\n1681693200,150\n");
  const CarbonAccounting up =
      CarbonAccounting::Open(clock_, {.carbon = (directory_.path() / "up.csv").string()}).value();
  const ShiftReport report =
      JudgeShift(up, ShiftGoal::kCarbon, At(0), {.pieces = {Piece(1, 2)}, .sigma = Joules(0)});
  EXPECT_DOUBLE_EQ(report.saved->value, -50);
  EXPECT_THAT(ToSentence(report), HasSubstr("+50"));
}

TEST_F(ShiftReportTest, PausesAreClosedForTheComparison) {
  const CarbonAccounting accounting = Open();
  const ShiftReport report = JudgeShift(accounting, ShiftGoal::kCarbon, At(0),
                                        {.pieces = {Piece(0, 1), Piece(2, 3)}, .sigma = Joules(0)});
  EXPECT_EQ(report.paused, Seconds(3600));
  EXPECT_DOUBLE_EQ(report.actual->value, 500);
  EXPECT_DOUBLE_EQ(report.at_once->value, 500);
  EXPECT_THAT(ToSentence(report), HasSubstr("began at once, paused for 60.0 min"));
}

TEST_F(ShiftReportTest, WhatIsNotKnownIsNotClaimed) {
  const CarbonAccounting accounting = Open();
  const ShiftReport late = JudgeShift(accounting, ShiftGoal::kCarbon, At(0),
                                      {.pieces = {Piece(60, 61)}, .sigma = Joules(0)});
  EXPECT_FALSE(late.saved);
  EXPECT_THAT(ToSentence(late), HasSubstr("is not known: the carbon intensity is not known for "
                                          "3.60 MJ of 3.60 MJ at the time of the run"));
  const ShiftReport price = JudgeShift(accounting, ShiftGoal::kPrice, At(0),
                                       {.pieces = {Piece(1, 2)}, .sigma = Joules(0)});
  EXPECT_THAT(price.unknown_because, HasSubstr("the price is not known"));
  EXPECT_FALSE(JudgeShift(accounting, ShiftGoal::kCarbon, At(0), {}).saved);
}

}  // namespace shift_report_test
}  // namespace zeus
