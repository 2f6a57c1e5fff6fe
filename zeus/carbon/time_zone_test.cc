#include "zeus/carbon/time_zone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "zeus/base/file.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/base/wall_time_text.h"

namespace zeus {
namespace time_zone_test {

using std::chrono::seconds;
using ::testing::HasSubstr;

WallTime At(const std::string& text) { return ParseWallTime(text).value(); }

TimeZone Zone(const char* name) { return TimeZone::Load(name).value(); }

// Local time as text, by the same writer as UTC.
std::string LocalText(const TimeZone& zone, const char* utc) {
  const std::string text = ToText(WallTime(zone.ToLocal(At(utc)).time_since_epoch()));
  return text.substr(0, text.size() - 1);
}

TEST(TimeZoneTest, BerlinChangesAtOneInTheMorningUtc) {
  const TimeZone berlin = Zone("Europe/Berlin");
  EXPECT_EQ(LocalText(berlin, "2024-03-31T00:59:59Z"), "2024-03-31T01:59:59");
  EXPECT_EQ(LocalText(berlin, "2024-03-31T01:00:00Z"), "2024-03-31T03:00:00");
  EXPECT_EQ(LocalText(berlin, "2024-10-27T00:59:59Z"), "2024-10-27T02:59:59");
  EXPECT_EQ(LocalText(berlin, "2024-10-27T01:00:00Z"), "2024-10-27T02:00:00");
}

TEST(TimeZoneTest, NewYorkChangesAtTwoInTheMorningLocally) {
  const TimeZone new_york = Zone("America/New_York");
  EXPECT_EQ(LocalText(new_york, "2024-03-10T06:59:59Z"), "2024-03-10T01:59:59");
  EXPECT_EQ(LocalText(new_york, "2024-03-10T07:00:00Z"), "2024-03-10T03:00:00");
  EXPECT_EQ(LocalText(new_york, "2024-11-03T05:59:59Z"), "2024-11-03T01:59:59");
  EXPECT_EQ(LocalText(new_york, "2024-11-03T06:00:00Z"), "2024-11-03T01:00:00");
}

TEST(TimeZoneTest, TheRuleContinuesBeyondTheTable) {
  EXPECT_EQ(LocalText(Zone("Europe/Berlin"), "2090-07-01T12:00:00Z"), "2090-07-01T14:00:00");
  EXPECT_EQ(LocalText(Zone("Europe/Berlin"), "2090-12-01T12:00:00Z"), "2090-12-01T13:00:00");
  EXPECT_EQ(LocalText(Zone("Australia/Sydney"), "2090-01-01T12:00:00Z"), "2090-01-01T23:00:00");
}

TEST(TimeZoneTest, HistoryComesFromTheTable) {
  // Moscow was four hours ahead from 2011 to 2014, and never since.
  EXPECT_EQ(LocalText(Zone("Europe/Moscow"), "2012-01-01T00:00:00Z"), "2012-01-01T04:00:00");
  EXPECT_EQ(LocalText(Zone("Europe/Moscow"), "2024-01-01T00:00:00Z"), "2024-01-01T03:00:00");
}

TEST(TimeZoneTest, AnOffsetSaysHowLongItHolds) {
  const UtcOffset offset = Zone("Europe/Berlin").OffsetAt(At("2024-03-30T12:00:00Z"));
  EXPECT_EQ(offset.offset, std::chrono::hours(1));
  EXPECT_EQ(WallTime(offset.until), At("2024-03-31T01:00:00Z"));
  EXPECT_EQ(WallTime(offset.from), At("2023-10-29T01:00:00Z"));
}

TEST(TimeZoneTest, OffsetsNeedNotBeWholeHours) {
  EXPECT_EQ(Zone("Asia/Kolkata").OffsetAt(At("2024-01-01T00:00:00Z")).offset,
            std::chrono::minutes(330));
  EXPECT_EQ(Zone("<-0330>3:30").OffsetAt(At("2024-01-01T00:00:00Z")).offset,
            std::chrono::minutes(-210));
}

TEST(TimeZoneTest, TheRuleAgreesWithTheTable) {
  const TimeZone table = Zone("America/New_York");
  const TimeZone rule = Zone("EST5EDT,M3.2.0,M11.1.0");
  for (WallTime time = At("2010-01-01T00:00:00Z"); time < At("2030-01-01T00:00:00Z");
       time += std::chrono::hours(1))
    ASSERT_EQ(table.OffsetAt(time).offset, rule.OffsetAt(time).offset) << ToText(time);
}

TEST(TimeZoneTest, DublinCallsWinterTheExceptionAndIsRightAllTheSame) {
  EXPECT_EQ(Zone("IST-1GMT0,M10.5.0,M3.5.0/1").OffsetAt(At("2024-01-01T00:00:00Z")).offset,
            seconds(0));
  EXPECT_EQ(Zone("IST-1GMT0,M10.5.0,M3.5.0/1").OffsetAt(At("2024-07-01T00:00:00Z")).offset,
            std::chrono::hours(1));
}

TEST(TimeZoneTest, DaysOfTheYearCountAsPosixSays) {
  // J60 is 1 March in every year; 59 (from 0) is 29 February in a leap year.
  const TimeZone julian = Zone("AAA0BBB,J60/0,J300/0");
  EXPECT_EQ(julian.OffsetAt(At("2024-02-29T23:59:59Z")).offset, seconds(0));
  EXPECT_EQ(julian.OffsetAt(At("2024-03-01T00:00:00Z")).offset, std::chrono::hours(1));
  const TimeZone counted = Zone("AAA0BBB,59/0,300/0");
  EXPECT_EQ(counted.OffsetAt(At("2024-02-29T00:00:00Z")).offset, std::chrono::hours(1));
  EXPECT_EQ(counted.OffsetAt(At("2023-02-28T23:59:59Z")).offset, seconds(0));
}

TEST(TimeZoneTest, RulesWithMistakesAreRefused) {
  for (const char* rule :
       {"CET-1CEST,", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0",
        "CET-1CEST,M3.5.7,M10.5.0", "<CET-1,", "CET-999CEST,M3.5.0,M10.5.0",
        "CET-1CEST,M3.5.0,M10.5.0x", ",", "A0,1,2"})
    EXPECT_FALSE(PosixTimeZone::Parse(rule).ok()) << rule;
}

TEST(TimeZoneTest, NamesDoNotLeaveTheDirectory) {
  for (const char* name : {"../../etc/passwd", "/etc/passwd", "", "Europe/..", "Europe/Ber lin"})
    EXPECT_EQ(TimeZone::Load(name).error().code, ErrorCode::kInvalidArgument) << name;
}

TEST(TimeZoneTest, AnUnknownNameSaysWhatToDo) {
  const auto zone = TimeZone::Load("Europe/Atlantis");
  EXPECT_EQ(zone.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(zone.error().message, HasSubstr("install tzdata"));
  zeus::testing::TemporaryDirectory empty;
  EXPECT_THAT(TimeZone::Load("Europe/Berlin", empty.path()).error().message,
              HasSubstr("a rule like"));
  EXPECT_TRUE(TimeZone::Load("UTC", empty.path()).ok());
}

TEST(TimeZoneTest, ADamagedFileIsAnErrorWhereverItIsCut) {
  const std::string file =
      ReadSmallFile(std::filesystem::path(kZoneInfoDirectory) / "Europe/Berlin").value();
  const std::size_t rule = file.rfind("\nCET");
  ASSERT_NE(rule, std::string::npos);
  for (std::size_t size = 0; size < rule; ++size)
    ASSERT_FALSE(TimeZone::Parse(std::string_view(file).substr(0, size)).ok()) << size;
  std::string counts = file;
  counts[32] = '\x7f';
  EXPECT_FALSE(TimeZone::Parse(counts).ok());
}

}  // namespace time_zone_test
}  // namespace zeus
