// Counting the steps of a program: rates, patterns and files.
#include "zeus/session/progress.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus {
namespace progress_test {

using namespace std::chrono_literals;

TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

TEST(ProgressSeriesTest, SteadyStepsGiveTheirTimeWhereverTheSliceBegins) {
  ProgressSeries series(Seconds(0));
  for (int i = 0; i < 100; ++i) series.Observe(At(0.1 * i), 10 * i);  // A print per ten steps.
  const auto rate = series.Between(At(2.03), At(5.08));
  ASSERT_TRUE(rate);
  EXPECT_NEAR(rate->time_per_step.count(), 0.01, 1e-12);
  EXPECT_NEAR(rate->sigma.count(), 0, 1e-12);
  EXPECT_NEAR(rate->steps, 305, 1e-6);
}

TEST(ProgressSeriesTest, WhatHappenedOutsideTheSliceHasNoPart) {
  ProgressSeries series(Seconds(0));
  double count = 0;
  for (double time = 0; time < 5; time += 0.1) series.Observe(At(time), ++count);
  for (double time = 5.05; time < 10; time += 0.3) series.Observe(At(time), ++count);
  EXPECT_NEAR(series.Between(At(1), At(5))->time_per_step.count(), 0.1, 1e-9);
  EXPECT_NEAR(series.Between(At(5), At(9))->time_per_step.count(), 0.3, 1e-9);
}

TEST(ProgressSeriesTest, SigmaCoversUnevenSteps) {
  ProgressSeries series(Seconds(0));
  double time = 0;
  for (int i = 0; i < 101; ++i) {
    series.Observe(At(time), i);
    time += i % 2 == 0 ? 0.09 : 0.11;
  }
  const auto rate = series.Between(At(0), At(20));
  ASSERT_TRUE(rate);
  EXPECT_NEAR(rate->time_per_step.count(), 0.1, 1e-9);
  // Each of 100 intervals is off by 10 ms.
  EXPECT_NEAR(rate->sigma.count(), 0.001, 0.0001);
}

TEST(ProgressSeriesTest, LateStampsAreDoubtful) {
  ProgressSeries series(10ms);
  for (int i = 0; i <= 10; ++i) series.Observe(At(i), i);
  EXPECT_NEAR(series.Between(At(0), At(10))->sigma.count(), 0.01 * std::sqrt(2) / 10, 1e-9);
}

TEST(ProgressSeriesTest, OneIntervalIsKnownToItsGranularityOnly) {
  ProgressSeries series(Seconds(0));
  series.Observe(At(1), 10);
  series.Observe(At(2), 20);
  const auto rate = series.Between(At(0), At(3));
  ASSERT_TRUE(rate);
  EXPECT_NEAR(rate->sigma / rate->time_per_step, 1 / std::sqrt(12.0), 1e-9);
  EXPECT_FALSE(series.Between(At(1.5), At(3)));
}

TEST(ProgressSeriesTest, CountsThatBeginAgainAreTheNextEpoch) {
  ProgressSeries series(Seconds(0));
  for (int i = 0; i < 30; ++i) series.Observe(At(i), 1 + i % 10);
  EXPECT_NEAR(series.Between(At(0), At(29))->time_per_step.count(), 1, 1e-9);
}

TEST(ProgressSeriesTest, ForgottenChangesAreGone) {
  ProgressSeries series(Seconds(0));
  for (int i = 0; i < 10; ++i) series.Observe(At(i), i);
  series.ForgetBefore(At(5));
  EXPECT_FALSE(series.Between(At(0), At(5)));
  EXPECT_TRUE(series.Between(At(5), At(9)));
  EXPECT_TRUE(series.Begun());
}

TEST(ProgressPatternTest, TheFirstGroupIsTheCount) {
  const auto pattern = ProgressPattern::Compile("step (\\d+)/(\\d+)").value();
  EXPECT_EQ(pattern.Count("epoch 1 step 20/100 loss 0.3", 0), 20);
  EXPECT_EQ(pattern.Count("loss 0.3", 0), std::nullopt);
}

TEST(ProgressPatternTest, WithoutAGroupEachMatchIsAStep) {
  const auto pattern = ProgressPattern::Compile("done").value();
  EXPECT_EQ(pattern.Count("done, done", 3), 5);
}

TEST(ProgressPatternTest, NoExpressionTakesLongerThanTheLineIsLong) {
  const auto pattern = ProgressPattern::Compile("(a+)+b|(.*)*=x").value();
  EXPECT_EQ(pattern.Count(std::string(4096, 'a'), 0), std::nullopt);
}

TEST(ProgressPatternTest, WhatIsNoNumberOfStepsSaysNothing) {
  const auto pattern = ProgressPattern::Compile("left (\\S+)").value();
  for (const char* const line : {"left nan", "left inf", "left 1e307", "left -1e300"})
    EXPECT_EQ(pattern.Count(line, 3), std::nullopt) << line;
}

TEST(ProgressPatternTest, EmptyMatchesDoNotHoldItUp) {
  const auto pattern = ProgressPattern::Compile("x*").value();
  EXPECT_EQ(pattern.Count("ab", 0), 3);  // Before, between and after.
}

TEST(ProgressPatternTest, AGroupThatIsNoNumberSaysNothing) {
  EXPECT_EQ(ProgressPattern::Compile("step (\\w+)").value().Count("step one", 7), std::nullopt);
}

TEST(ProgressPatternTest, ABrokenExpressionIsRefusedAndQuoted) {
  const auto broken = ProgressPattern::Compile("step (\\d+");
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(broken.error().message.find("step (\\d+"), std::string::npos) << broken.error().message;
}

class ProgressFileTest : public ::testing::Test {
 protected:
  void Write(const std::string& text) { std::ofstream(path_) << text; }

  zeus::testing::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_.path() / "steps";
  ProgressFile file_{path_};
};

TEST_F(ProgressFileTest, WhatIsNoFileIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(file_.Count(), std::nullopt);
}

TEST_F(ProgressFileTest, AHugeFileIsCountedBitByBit) {
  std::ofstream(path_) << "begin\n";
  std::filesystem::resize_file(path_, std::uint64_t{1} << 36);  // Sparse.
  EXPECT_EQ(file_.Count(), 1);
  EXPECT_EQ(file_.Count(), 1);
}

TEST_F(ProgressFileTest, TheLastLineIsTheCountWhenItIsANumber) {
  EXPECT_EQ(file_.Count(), std::nullopt);
  Write("");
  EXPECT_EQ(file_.Count(), std::nullopt);
  Write("12");
  EXPECT_EQ(file_.Count(), 12);
  Write("10\n20\n30.5\n");
  EXPECT_EQ(file_.Count(), 30.5);
}

TEST_F(ProgressFileTest, OtherwiseLinesAreCountedAlsoWhenTheFileGrowsOrBeginsAgain) {
  Write("a 1\nb 2\n");
  EXPECT_EQ(file_.Count(), 2);
  std::ofstream(path_, std::ios::app) << "c 3\n";
  EXPECT_EQ(file_.Count(), 3);
  Write("x y\n");
  EXPECT_EQ(file_.Count(), 1);
}

}  // namespace progress_test
}  // namespace zeus
