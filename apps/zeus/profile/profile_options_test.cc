#include "apps/zeus/profile/profile_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "apps/zeus/profile/plot_scale.h"
#include "apps/zeus/profile/svg_plot.h"
#include "apps/zeus/profile/uncertain_text.h"
#include "zeus/base/xml.h"

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
  EXPECT_EQ(ParseDuration("1.5", "--slice").value(), 1500ms);
  for (const char* wrong : {"", "s", "-1s", "5 h", "nan"}) {
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

TEST(AxisTest, TicksAreRoundAndHoldTheValues) {
  const Axis axis = RoundAxis(97, 251, 8);
  EXPECT_LE(axis.low, 97);
  EXPECT_GE(axis.high, 251);
  EXPECT_EQ(axis.step, 50);
  EXPECT_EQ(axis.Label(100), "100");
  EXPECT_EQ(RoundAxis(0.012, 0.058, 5).Label(0.02), "0.02");
  const Axis single = RoundAxis(5, 5, 5);
  EXPECT_LT(single.low, 5);
  EXPECT_GT(single.high, 5);
}

TEST(UncertainTextTest, DigitsAreThoseThatTheUncertaintyLeavesMeaningTo) {
  EXPECT_EQ(WithSigma(231.234, 0.52, "W"), "231.23 ± 0.52 W");
  EXPECT_EQ(WithSigma(231.2, 12, "W"), "231 ± 12 W");
  EXPECT_EQ(WithSigma(0.004213, 0.000012, "s"), "4.213 ± 0.012 ms");
  EXPECT_EQ(WithSigma(12345, 100, "J"), "12.35 ± 0.10 kJ");
  EXPECT_EQ(Change(90, 100), "-10.0 %");
  EXPECT_EQ(Change(1, 0), "-");
}

TEST(SvgTest, TextFromOutsideCannotLeaveItsPlace) {
  EXPECT_EQ(EscapeXml("<a href=\"x\">&\n\a"), "&lt;a href=&quot;x&quot;&gt;&amp;\n ");
}

TEST(SvgTest, ASweepWithoutRowsSaysSo) {
  EXPECT_THAT(ToSvg(SweepReport{}), HasSubstr("nothing was measured"));
}

}  // namespace profile_options_test
}  // namespace zeus::cli
