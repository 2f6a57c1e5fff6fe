#include "zeus/carbon/step_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/testing/temporary_directory.h"
#include "zeus/base/wall_time_text.h"

namespace zeus {
namespace step_series_test {

using std::chrono::hours;
using ::testing::HasSubstr;

WallTime At(const char* text) { return ParseWallTime(text).value(); }

std::string MistakeIn(const char* csv) {
  const auto parsed = ParseCsvSeries(csv, "grid.csv", CsvValues::kNotNegative);
  return parsed.ok() ? "" : parsed.error().message;
}

TEST(StepSeriesTest, ARowHoldsUntilTheNext) {
  const StepSeries series({{At("2024-01-01T02:00:00Z"), 300}, {At("2024-01-01T00:00:00Z"), 100}});
  const auto step = series.At(At("2024-01-01T01:59:59Z"));
  ASSERT_TRUE(step.ok());
  EXPECT_EQ(step.value().value, 100);
  EXPECT_EQ(step.value().valid.until, At("2024-01-01T02:00:00Z"));
  EXPECT_EQ(step.value().note, "");
  EXPECT_EQ(series.At(At("2024-01-01T02:00:00Z")).value().value, 300);
}

TEST(StepSeriesTest, TheLastRowHoldsAsLongAsTheOneBefore) {
  const StepSeries series({{At("2024-01-01T00:00:00Z"), 100}, {At("2024-01-01T02:00:00Z"), 300}});
  EXPECT_EQ(series.At(At("2024-01-01T03:59:59Z")).value().note, "");
  const auto after = series.At(At("2024-01-01T04:00:00Z"));
  EXPECT_EQ(after.value().value, 300);
  EXPECT_THAT(after.value().note, HasSubstr("no value after 2024-01-01T02:00:00Z"));
  EXPECT_TRUE(after.value().estimated);
}

TEST(StepSeriesTest, OutsideTheNearestEndIsUsedUpToALimit) {
  const StepSeries series({{At("2024-01-02T00:00:00Z"), 100}}, {.reach = hours(6)});
  const auto before = series.At(At("2024-01-01T18:00:00Z"));
  ASSERT_TRUE(before.ok());
  EXPECT_THAT(before.value().note, HasSubstr("no value before"));
  EXPECT_EQ(before.value().valid.until, At("2024-01-02T00:00:00Z"));
  EXPECT_EQ(series.At(At("2024-01-01T17:59:59Z")).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(series.At(At("2024-01-02T06:59:59Z")).ok());
  EXPECT_FALSE(series.At(At("2024-01-02T07:00:00Z")).ok());
}

TEST(StepSeriesTest, AGapIsNotAValueThatHolds) {
  const StepSeries series({{At("2024-01-01T00:00:00Z"), 100}, {At("2024-01-04T00:00:00Z"), 300}},
                          {.hold = hours(1), .reach = hours(6)});
  EXPECT_EQ(series.At(At("2024-01-01T00:30:00Z")).value().note, "");
  EXPECT_THAT(series.At(At("2024-01-01T01:00:00Z")).value().note, HasSubstr("no value after"));
  EXPECT_FALSE(series.At(At("2024-01-02T00:00:00Z")).ok());
  EXPECT_TRUE(series.At(At("2024-01-04T00:00:00Z")).ok());
}

TEST(StepSeriesTest, NewerRowsReplaceOlderOnes) {
  StepSeries series({{At("2024-01-01T00:00:00Z"), 100}});
  series.Add({{At("2024-01-01T00:00:00Z"), 120}, {At("2024-01-01T01:00:00Z"), 130}});
  ASSERT_EQ(series.rows().size(), 2U);
  EXPECT_EQ(series.rows()[0].value, 120);
  series.DropBefore(At("2024-01-01T00:30:00Z"));
  EXPECT_EQ(series.rows().size(), 1U);
}

TEST(CsvSeriesTest, SaysWhichLineIsWrongAndWhy) {
  EXPECT_EQ(MistakeIn("# note\ntime,grams_per_kwh\n\n1711848600, 350\r\n"), "");
  EXPECT_THAT(MistakeIn("1711848600,350\n"), HasSubstr("grid.csv:1: the first line"));
  EXPECT_THAT(MistakeIn("time,g\n1,2\nyesterday,350\n"), HasSubstr("grid.csv:3: \"yesterday\""));
  EXPECT_THAT(MistakeIn("time,g\n1,much\n"), HasSubstr("grid.csv:2: \"much\" is not a number"));
  EXPECT_THAT(MistakeIn("time,g\n1,-5\n"), HasSubstr("grid.csv:2: \"-5\" is out of range"));
  EXPECT_THAT(MistakeIn("time,g\n1,inf\n"), HasSubstr("out of range"));
  EXPECT_THAT(MistakeIn("time,g\n1,2,3\n"), HasSubstr("is not a time and a number"));
  EXPECT_THAT(MistakeIn("time,g\n"), HasSubstr("no rows"));
  EXPECT_THAT(MistakeIn(""), HasSubstr("no rows"));
}

TEST(IntensitySeriesTest, ReadsAFileAndNamesIt) {
  zeus::testing::TemporaryDirectory directory;
  const auto path = directory.AddFile("grid.csv", "time,grams_per_kwh\n2024-01-01T00:00:00Z,350\n");
  const auto series = IntensitySeries::Load(path);
  ASSERT_TRUE(series.ok());
  const auto reading = series.value()->At(At("2024-01-01T00:10:00Z"));
  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(reading.value().intensity, CarbonIntensity(350));
  EXPECT_EQ(reading.value().source, "grid.csv");
}

TEST(IntensitySeriesTest, RefusesAnotherUnit) {
  zeus::testing::TemporaryDirectory directory;
  const auto path = directory.AddFile("grid.csv", "time,kg_per_mwh\n2024-01-01T00:00:00Z,350\n");
  EXPECT_THAT(IntensitySeries::Load(path).error().message, HasSubstr("must be \"grams_per_kwh\""));
}

}  // namespace step_series_test
}  // namespace zeus
