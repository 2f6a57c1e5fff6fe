#include "zeus/monitor/timeline.h"

#include <gtest/gtest.h>

#include <numeric>

namespace zeus {
namespace timeline_test {

using namespace std::chrono_literals;

constexpr TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

TEST(TimelineTest, GivesTheSpansThatOverlap) {
  Timeline line;
  for (int i = 0; i < 10; ++i) line.Add(At(i), At(i + 1), i);
  const auto samples = line.Between(At(2.5), At(5));
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples.front().value, 2);
  EXPECT_EQ(samples.back().value, 4);
  EXPECT_EQ(samples.back().end, At(5));
}

TEST(TimelineTest, AValueThatStaysCostsNothing) {
  Timeline line(8);
  for (int i = 0; i < 1000; ++i) line.Add(At(i), At(i + 1), 60);
  EXPECT_EQ(line.size(), 1U);
}

TEST(TimelineTest, MemoryIsBoundedAndTheMeanIsKept) {
  Timeline line(64);
  double sum = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const double value = (i * 7) % 13;
    line.Add(At(i), At(i + 1), value);
    sum += value;
  }
  EXPECT_LE(line.size(), 64U);
  const auto samples = line.Between(At(0), At(1'000'000));
  EXPECT_EQ(samples.front().time, At(0)) << "the whole recording is covered";
  double integral = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const TimePoint end = i + 1 < samples.size() ? samples[i + 1].time : At(1'000'000);
    integral += samples[i].value * (end - samples[i].time).count();
  }
  EXPECT_NEAR(integral / sum, 1.0, 1e-12);
}

TEST(TimelineTest, TimesOfWhichNothingIsKnownStayUnknown) {
  Timeline line(8);
  for (int i = 0; i < 100; ++i) {
    const TimePoint begin{Seconds(i < 50 ? i : i + 1000)};
    line.Add(begin, begin + Seconds(1), i);
  }
  EXPECT_LE(line.size(), 8U);
  EXPECT_TRUE(line.Between(TimePoint(Seconds(60)), TimePoint(Seconds(1040))).empty());
}

}  // namespace timeline_test
}  // namespace zeus
