#include "apps/zeus/profile/profile_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "apps/zeus/profile/profile_output.h"
#include "zeus/report/report.h"

namespace zeus::cli {
namespace profile_options_test {

using namespace std::chrono_literals;
using namespace zeus::literals;
using ::testing::HasSubstr;

TEST(ProfileOptionsTest, LimitsAreTriedFromTheHighestDownEachOnce) {
  const auto options = Interpret({.limits = "150, 250,200,150"}, {"true"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options.value().session.settings, (std::vector<Setting>{250_W, 200_W, 150_W}));
}

TEST(ProfileOptionsTest, ThereAndBackUnlessToldOtherwise) {
  EXPECT_EQ(Interpret({}, {"true"}).value().session.plan.rounds, 2U);
  EXPECT_EQ(Interpret({.rounds = 1}, {"true"}).value().session.plan.rounds, 1U);
  EXPECT_EQ(Interpret({.until_done = true}, {"true"}).value().session.plan.rounds, std::nullopt);
}

TEST(ProfileOptionsTest, LimitsOfAClockAreMegahertz) {
  const auto options = Interpret({.knob = "graphics_clock", .limits = "1380"}, {"true"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options.value().session.settings.front(), Setting(1380_MHz));
}

TEST(ProfileOptionsTest, DurationsHaveUnits) {
  EXPECT_EQ(ParseDuration("5s", "--slice").value(), 5s);
  EXPECT_EQ(ParseDuration("500ms", "--slice").value(), 500ms);
  EXPECT_EQ(ParseDuration("2min", "--slice").value(), 2min);
  EXPECT_EQ(ParseDuration("6 h", "--slice").value(), 6h);
  EXPECT_EQ(ParseDuration("1.5", "--slice").value(), 1500ms);
  for (const char* wrong : {"", "s", "-1s", "5 d", "900h", "nan"}) {
    const auto refused = ParseDuration(wrong, "--slice");
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_THAT(refused.error().message, HasSubstr("--slice takes a duration"));
  }
}

TEST(ProfileOptionsTest, WhatExcludesEachOtherIsRefusedInOneSentence) {
  const std::vector<ProfileFlags> wrong = {
      {.limits = "250", .stride = 25},
      {.limits = "250,x"},
      {.limits = "0"},
      {.knob = "fan"},
      {.slice = "10ms"},
      {.progress = "a", .progress_file = "b"},
      {.progress = "("},
      {.keep = true},
      {.progress = "a", .keep = true, .stop = true},
      {.json = "x", .html = "x"},
      {.gpus = "0", .knob = "cpu_power_limit"},
  };
  for (const ProfileFlags& flags : wrong) {
    const auto refused = Interpret(flags, {"true"});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument) << refused.error().message;
  }
}

TEST(ProfileDrawingTest, AProfileWithoutRowsSaysSo) {
  const report::Figure figure = ToFigure(ProfileReport{});
  EXPECT_EQ(figure.caption, "Nothing was measured.");
  EXPECT_THAT(report::ToSvg(figure), HasSubstr("no data"));
  EXPECT_EQ(report::ToTextPlot(ToRelativePanel(ProfileReport{}), report::Glyphs::kAscii), "");
}

}  // namespace profile_options_test
}  // namespace zeus::cli
