#include "apps/zeus/shift/shift_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/wall_time_text.h"

namespace zeus::cli {
namespace shift_options_test {

using ::testing::HasSubstr;

const WallTime kNow = ParseWallTime("2026-03-28T20:00:00Z").value();

TimeZone Berlin() { return TimeZone::Load("CET-1CEST,M3.5.0,M10.5.0/3").value(); }

std::string Parsed(const std::string& text) {
  const auto time = ParseFinishBy(text, kNow, Berlin());
  return time.ok() ? ToText(time.value()) : time.error().message;
}

TEST(ShiftOptionsTest, TimesWithoutAnOffsetAreLocal) {
  EXPECT_EQ(Parsed("2026-03-29T01:30"), "2026-03-29T00:30:00Z");
  // Three in the morning is summer already.
  EXPECT_EQ(Parsed("2026-03-29T03:30"), "2026-03-29T01:30:00Z");
  EXPECT_EQ(Parsed("2026-03-29T08:00:30"), "2026-03-29T06:00:30Z");
  EXPECT_EQ(Parsed("2026-03-29T08:00:00Z"), "2026-03-29T08:00:00Z");
  EXPECT_EQ(Parsed("2026-03-29T08:00:00-05:00"), "2026-03-29T13:00:00Z");
}

TEST(ShiftOptionsTest, ATimeOfDayIsTheNextOne) {
  EXPECT_EQ(Parsed("22:00"), "2026-03-28T21:00:00Z");  // It is nine in the evening there.
  EXPECT_EQ(Parsed("08:00"), "2026-03-29T06:00:00Z");
}

TEST(ShiftOptionsTest, WhatIsNoTimeToComeIsRefused) {
  EXPECT_THAT(Parsed("tomorrow"), HasSubstr("--finish-by takes a time as in 2026-11-18T08:00"));
  EXPECT_THAT(Parsed("2026-13-01T08:00"), HasSubstr("takes a time"));
  EXPECT_THAT(Parsed("2025-03-29T08:00"), HasSubstr("which is over"));
  EXPECT_THAT(Parsed("2036-03-29T08:00"), HasSubstr("more than a year away"));
}

std::string Mistake(const ShiftFlags& flags, CarbonOptions carbon = {}) {
  const auto shift = Interpret(flags, carbon, kNow);
  return shift.ok() ? "" : shift.error().message;
}

TEST(ShiftOptionsTest, RefusesWhatMakesNoSense) {
  EXPECT_THAT(Mistake({.max_wait = "2h"}), HasSubstr("--max-wait belongs to --shift"));
  EXPECT_THAT(Mistake({.goal = "carbon"}), HasSubstr("needs --finish-by, or --max-wait"));
  EXPECT_THAT(Mistake({.goal = "carbon", .max_wait = "2h"}), HasSubstr("--carbon"));
  EXPECT_THAT(Mistake({.goal = "price", .max_wait = "2h"}), HasSubstr("--price"));
  EXPECT_THAT(Mistake({.goal = "price", .max_wait = "long"}, {.price = "p.csv"}),
              HasSubstr("--max-wait"));
}

TEST(ShiftOptionsTest, TheForecastMayHaveASourceOfItsOwn) {
  CarbonOptions carbon{.carbon = "actual.csv"};
  const auto shift = Interpret(
      {.goal = "carbon", .max_wait = "2h", .forecast = "forecast.csv", .forecast_error = 20},
      carbon, kNow);
  ASSERT_TRUE(shift.ok()) << shift.error().message;
  EXPECT_FALSE(shift.value()->same_source);
  EXPECT_EQ(shift.value()->forecasts.carbon, "forecast.csv");
  EXPECT_EQ(shift.value()->forecasts.forecast_error, 0.2);
  EXPECT_EQ(carbon.carbon, "actual.csv");
  EXPECT_EQ(shift.value()->forecasts.named_by, "--forecast");
  for (const char* bare : {"12", " 0.5", "3 "}) {
    const auto refused = Interpret({.goal = "carbon", .max_wait = bare}, carbon, kNow);
    ASSERT_FALSE(refused.ok()) << bare;
    EXPECT_THAT(refused.error().message, HasSubstr("has no unit")) << bare;
  }
  CarbonOptions live{.carbon = "carbonintensity.org.uk"};
  EXPECT_TRUE(Interpret({.goal = "carbon", .max_wait = "2h"}, live, kNow).value()->same_source);
  EXPECT_TRUE(live.with_forecast);
  EXPECT_FALSE(Interpret({}, live, kNow).value());
}

}  // namespace shift_options_test
}  // namespace zeus::cli
