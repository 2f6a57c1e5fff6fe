#include "zeus/session/epoch_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <utility>

namespace zeus {
namespace epoch_report_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(EpochReportTest, OnlyTheMetricIsNeeded) {
  const auto report = ParseEpochReport(R"({"metric": 0.5})");
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report.value().metric, 0.5);
  EXPECT_FALSE(report.value().epoch || report.value().time || report.value().energy);
}

TEST(EpochReportTest, AMetricThatIsNullIsNotANumber) {
  const auto report = ParseEpochReport(R"({"metric": null, "epoch": 2, "loss": 3})");
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(std::isnan(report.value().metric));
  EXPECT_EQ(report.value().epoch, 2);
}

TEST(EpochReportTest, MistakesNameTheField) {
  for (const auto& [text, field] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"({})", "metric"},
           {R"({"metric": "high"})", "metric"},
           {R"({"metric": 1, "epoch": 0})", "epoch"},
           {R"({"metric": 1, "epoch": 1.5})", "epoch"},
           {R"({"metric": 1, "time_seconds": -1})", "time_seconds"},
           {R"({"metric": 1, "energy_joules": "x"})", "energy_joules"},
           {R"({"metric": 1, "energy_joules": 1e22})", "energy_joules"},
           {R"({"metric": 1, "time_seconds": 1e300})", "time_seconds"},
           {R"([1])", "object"},
           {R"({"metric": 1)", ""}}) {
    const auto report = ParseEpochReport(text);
    ASSERT_FALSE(report.ok()) << text;
    EXPECT_THAT(report.error().message, HasSubstr(field));
  }
}

class EpochArrivalsTest : public ::testing::Test {
 protected:
  EpochTiming After(Seconds time, std::size_t epochs = 1, Seconds blind = 20ms) {
    clock_.SleepFor(time);
    return arrivals_.Judge(epochs, clock_.Now(), blind);
  }

  VirtualClock clock_;
  EpochArrivals arrivals_{clock_.Now()};
};

TEST_F(EpochArrivalsTest, EpochsThatComeOneByOneAreKnown) {
  EXPECT_EQ(After(5s), EpochTiming::kKnown);
  EXPECT_EQ(After(2s), EpochTiming::kKnown);
  EXPECT_EQ(After(2s), EpochTiming::kKnown);
}

TEST_F(EpochArrivalsTest, EpochsThatAreReadTogetherAreALumpAndSoIsItsRest) {
  EXPECT_EQ(After(20s, 10), EpochTiming::kLumped);
  EXPECT_EQ(After(1ms), EpochTiming::kTooSoon);
  EXPECT_EQ(After(1ms, 3), EpochTiming::kTooSoon);
  EXPECT_EQ(After(2s), EpochTiming::kKnown);
}

TEST_F(EpochArrivalsTest, WhoWasStoppedDoesNotKnowWhenAnEpochEnded) {
  EXPECT_EQ(After(2s), EpochTiming::kKnown);
  EXPECT_EQ(After(3s, 1, 1500ms), EpochTiming::kLumped);
}

TEST_F(EpochArrivalsTest, AFirstEpochThatCompilesDoesNotMakeTheOthersTooShort) {
  EXPECT_EQ(After(600s), EpochTiming::kKnown);
  EXPECT_EQ(After(3s), EpochTiming::kKnown);
}

}  // namespace epoch_report_test
}  // namespace zeus
