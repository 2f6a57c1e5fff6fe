#include "zeus/monitor/calibration/load_pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace zeus::calibration {
namespace load_pattern_test {

using namespace std::chrono_literals;

constexpr TimePoint At(Seconds time) { return TimePoint(time); }

TEST(LoadPatternTest, BusyTimeCountsOnlyBusyStretches) {
  LoadPattern load;
  load.Add(At(1s), LoadState::kBusy);
  load.Add(At(3s), LoadState::kIdle);
  load.Add(At(4s), LoadState::kBusy);

  EXPECT_EQ(load.BusyTime(At(0.5s)), 0s);
  EXPECT_EQ(load.BusyTime(At(2s)), 1s);
  EXPECT_EQ(load.BusyTime(At(3.5s)), 2s);
  EXPECT_EQ(load.BusyTime(At(10s)), 8s);
  EXPECT_DOUBLE_EQ(load.BusyShare(At(0s), At(4s)), 0.5);
}

TEST(LoadPatternTest, SwitchingToThePresentStateChangesNothing) {
  LoadPattern load;
  load.Add(At(0s), LoadState::kIdle);
  load.Add(At(1s), LoadState::kBusy);
  load.Add(At(2s), LoadState::kBusy);

  EXPECT_EQ(load.switches().size(), 1U);
  EXPECT_EQ(load.BusyTime(At(3s)), 2s);
}

TEST(LoadPatternTest, ASquareWaveLastsAsLongAsAskedAndIsNotRegular) {
  const std::vector<Seconds> wave = SquareWave(0.5s, 20s);

  EXPECT_NEAR(std::accumulate(wave.begin(), wave.end(), Seconds(0)).count(), 20, 1e-9);
  EXPECT_NEAR(static_cast<double>(wave.size()), 80, 2);
  const auto [shortest, longest] = std::minmax_element(wave.begin(), wave.end() - 1);
  EXPECT_GE(*shortest, 0.1875s);
  EXPECT_LE(*longest, 0.3125s);
  EXPECT_GT(*longest - *shortest, 0.1s);
}

}  // namespace load_pattern_test
}  // namespace zeus::calibration
