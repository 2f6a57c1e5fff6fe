#include "zeus/optimizer/shift/testing/year.h"

#include <gtest/gtest.h>

namespace zeus {
namespace year_test {

using testing::MakeYears;
using testing::SimulatePauses;
using testing::SimulateYear;
using testing::YearSeries;
using testing::YearSum;

// The figures of docs/shifting.md come from ./dev bench shift, which does the same with more runs.
TEST(ShiftedYearTest, SixHoursWithinADaySaveAQuarterOfTheCarbonAndMissNoDeadline) {
  const YearSeries swing = MakeYears().front();
  const YearSum perfect = SimulateYear(swing, {.forecast_error = 0, .runs = 400});
  EXPECT_GE(perfect.Saved(perfect.ours), 26);
  const YearSum sum = SimulateYear(swing, {.runs = 400});
  EXPECT_GE(sum.Saved(sum.ours), 26);
  EXPECT_GE(sum.Saved(sum.ours), 0.9 * sum.Saved(sum.perfect));
  EXPECT_EQ(sum.missed, 0);
}

TEST(ShiftedYearTest, NoSeriesMissesADeadlineOrSavesMoreThanPerfectKnowledge) {
  for (const YearSeries& series : MakeYears()) {
    const YearSum sum = SimulateYear(series, {.runs = 200});
    EXPECT_EQ(sum.missed, 0) << series.name;
    EXPECT_LE(sum.Saved(sum.ours), sum.Saved(sum.perfect) + 1e-6) << series.name;
    EXPECT_GE(sum.Saved(sum.ours), 0) << series.name;
  }
}

TEST(ShiftedYearTest, WhereThereIsNothingToGainNobodyWaits) {
  const YearSeries flat = MakeYears().back();
  const YearSum known = SimulateYear(flat, {.forecast_error = 0, .runs = 200});
  EXPECT_EQ(known.waited, 0);
  // Forecasts of a flat signal that err see gains that are not there, but seldom believe them.
  const YearSum sum = SimulateYear(flat, {.runs = 200});
  EXPECT_LE(sum.waited, sum.runs / 5);
  EXPECT_EQ(sum.worse, 0);
  EXPECT_NEAR(sum.Saved(sum.perfect), 0, 1e-9);
}

TEST(ShiftedYearTest, TightDeadlinesAreKept) {
  const YearSum sum =
      SimulateYear(MakeYears().front(), {.within = std::chrono::minutes(6 * 60 + 20), .runs = 400});
  EXPECT_EQ(sum.missed, 0);
  EXPECT_GT(sum.not_feasible, 0);
}

TEST(ShiftedYearTest, PausesSaveMoreAndMissNoDeadline) {
  const YearSeries dip = MakeYears()[1];
  const YearSum piece = SimulateYear(dip, {.forecast_error = 0, .runs = 30});
  const YearSum pauses = SimulatePauses(dip, {.forecast_error = 0, .runs = 30});
  EXPECT_GT(pauses.Saved(pauses.ours), piece.Saved(piece.ours));
  EXPECT_LE(pauses.Saved(pauses.ours), pauses.Saved(pauses.perfect) + 0.5);
  const YearSum wrong = SimulatePauses(dip, {.runs = 30});
  EXPECT_EQ(pauses.missed + wrong.missed, 0);
  EXPECT_GT(wrong.Saved(wrong.ours), 0);
}

}  // namespace year_test
}  // namespace zeus
