#include "zeus/monitor/calibration/meter_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace zeus::calibration {
namespace meter_csv_test {

using namespace std::chrono_literals;
using namespace zeus::literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr WallTime kNoon = std::chrono::sys_days(std::chrono::year(2024) / 5 / 1) + 12h;

std::vector<MeterSample> Parse(std::string_view text) {
  auto samples = ParseMeterCsv(text, "meter.csv");
  EXPECT_TRUE(samples.ok()) << samples.error().message;
  return samples.ok() ? samples.value() : std::vector<MeterSample>();
}

std::string Refusal(std::string_view text) {
  const auto samples = ParseMeterCsv(text, "meter.csv");
  EXPECT_FALSE(samples.ok());
  if (samples.ok()) return "";
  EXPECT_EQ(samples.error().code, ErrorCode::kInvalidArgument);
  return samples.error().message;
}

TEST(MeterCsvTest, TimesAreRfc3339OrSecondsSince1970) {
  const auto samples = Parse(
      "time,watts\n"
      "2024-05-01T12:00:00Z,100\n"
      "2024-05-01T14:00:00.25+02:00,101.5\n"
      "2024-05-01 06:30:00.5-05:30,102\n"
      "1714564801.75,103\n");

  ASSERT_EQ(samples.size(), 4U);
  EXPECT_EQ(samples[0].time, kNoon);
  EXPECT_EQ(samples[1].time, kNoon + 250ms);
  EXPECT_EQ(samples[1].power, 101.5_W);
  EXPECT_EQ(samples[2].time, kNoon + 500ms);
  EXPECT_EQ(samples[3].time, kNoon + 1750ms);
}

TEST(MeterCsvTest, ColumnsAreFoundByTheirNames) {
  const auto samples =
      Parse("\xEF\xBB\xBFVolts,Watts,Time\r\n230,55,10\r\n\r\n# pause\r\n230,56,11\r\n");

  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[1].power, 56_W);
  EXPECT_EQ(samples[1].time, WallTime(11s));
}

TEST(MeterCsvTest, FieldsMayBeQuoted) {
  EXPECT_EQ(Parse("\"time\",\"plug, left\",\"watts\"\n10,\"a \"\"b\"\"\",55\n").size(), 1U);
}

TEST(MeterCsvTest, AHeaderIsNotNeeded) { EXPECT_EQ(Parse("10,55\n11,56\n").size(), 2U); }

TEST(MeterCsvTest, AnUnfinishedLastLineIsStillBeingWritten) {
  EXPECT_EQ(Parse("10,55\n11,").size(), 1U);
  EXPECT_EQ(Parse("10,55\n11,56").size(), 2U);
}

TEST(MeterCsvTest, BadRowsAreRefusedWithFileLineAndReason) {
  EXPECT_THAT(Refusal("time,watts\n10,55\n11,much\n"),
              StartsWith("meter.csv:3: \"much\" is no power"));
  EXPECT_THAT(Refusal("10,55\n11\n"), StartsWith("meter.csv:2: has 1 columns and needs 2"));
  EXPECT_THAT(Refusal("10,55\nyesterday,1\n"), HasSubstr("meter.csv:2: \"yesterday\" is no time"));
  EXPECT_THAT(Refusal("10,nan\n"), HasSubstr("meter.csv:1"));
  EXPECT_THAT(Refusal("10,1e300\n"), HasSubstr("no power"));
  EXPECT_THAT(Refusal("when,power\n1,2\n"), HasSubstr("columns time and watts"));
}

TEST(MeterCsvTest, ATimeWithoutAnOffsetOrWithADateThatIsNoneIsRefused) {
  EXPECT_THAT(Refusal("time,watts\n2024-05-01T12:00:00,1\n"), HasSubstr("with an offset"));
  EXPECT_THAT(Refusal("time,watts\n2024-13-01T12:00:00Z,1\n"), HasSubstr("no time"));
  EXPECT_THAT(Refusal("time,watts\n2024-05-01T12:00:00.xZ,1\n"), HasSubstr("no time"));
  EXPECT_THAT(Refusal("time,watts\n2024-05-01T12:00:00+99:00,1\n"), HasSubstr("no time"));
}

TEST(MeterCsvTest, AClockThatWentBackIsRefusedWithTheLine) {
  EXPECT_THAT(Refusal("time,watts\n10,1\n11,1\n10.5,1\n"), StartsWith("meter.csv:4: "));
  EXPECT_THAT(Refusal("time,watts\n10,1\n11,1\n10.5,1\n"), HasSubstr("clock went back"));
  EXPECT_EQ(Parse("10,1\n10,2\n").size(), 2U);
}

TEST(MeterCsvTest, AnEmptyLogHasNoSamples) { EXPECT_TRUE(Parse("").empty()); }

}  // namespace meter_csv_test
}  // namespace zeus::calibration
