#include "zeus/monitor/update_clock.h"

#include <gtest/gtest.h>

#include <cmath>

#include "zeus/base/random.h"

namespace zeus {
namespace update_clock_test {

using namespace std::chrono_literals;

constexpr TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

// Polls a sensor that updates at phase + k * period, when the clock asks for it.
struct PolledSensor {
  double period;
  double phase;
  double now = 0;
  int polls = 0;

  UpdateClock::Instant Poll(UpdateClock& clock, int updates) {
    UpdateClock::Instant instant{};
    for (int seen = 0; seen < updates;) {
      const double before = now;
      now = clock.NextPoll(At(now)).latest.time_since_epoch().count() + 1e-5;
      ++polls;
      if (Count(now) == Count(before)) continue;
      instant = clock.Changed(At(before), At(now));
      ++seen;
    }
    return instant;
  }
  double Count(double time) const { return std::floor((time - phase) / period); }
  double LastUpdate() const { return phase + Count(now) * period; }
};

TEST(UpdateClockTest, KnowsTheInstantFarBetterThanThePolls) {
  UpdateClock clock(100ms);
  PolledSensor sensor{.period = 0.1013, .phase = 0.0371};
  const auto instant = sensor.Poll(clock, 30);
  EXPECT_NEAR(clock.period().count(), 0.1013, 3e-4);
  EXPECT_NEAR(instant.time.time_since_epoch().count(), sensor.LastUpdate(), 0.003);
  EXPECT_LT(instant.sigma, 2ms);
}

TEST(UpdateClockTest, LooksAboutOncePerUpdate) {
  UpdateClock clock(100ms);
  PolledSensor sensor{.period = 0.0997, .phase = 0.0371};
  sensor.Poll(clock, 50);
  sensor.polls = 0;
  sensor.Poll(clock, 100);
  EXPECT_LE(sensor.polls, 140);
}

TEST(UpdateClockTest, TheStatedUncertaintyIsHonest) {
  int within = 0;
  Random random(7);
  for (int i = 0; i < 200; ++i) {
    UpdateClock clock(100ms);
    PolledSensor sensor{.period = 0.1 * random.Uniform(0.97, 1.03),
                        .phase = 0.1 * random.Uniform()};
    const auto instant = sensor.Poll(clock, 12 + i % 30);
    const double error = instant.time.time_since_epoch().count() - sensor.LastUpdate();
    within += std::abs(error) <= 2.0 * instant.sigma.count() + 1e-9;
  }
  EXPECT_GE(within, 180);
}

TEST(UpdateClockTest, LearnsThatASensorIsSlowerThanExpected) {
  UpdateClock clock(100ms);
  PolledSensor sensor{.period = 0.5, .phase = 0.01};
  sensor.Poll(clock, 30);
  EXPECT_NEAR(clock.period().count(), 0.5, 0.01);
}

TEST(UpdateClockTest, ASensorFasterThanThePollsIsHalfAPeriodOld) {
  UpdateClock clock(1ms);
  const auto instant = clock.Changed(At(1.0), At(1.05));
  EXPECT_DOUBLE_EQ(instant.time.time_since_epoch().count(), 1.0495);
  EXPECT_FALSE(clock.locked());
}

TEST(UpdateClockTest, JitterShowsAsUncertainty) {
  UpdateClock clock(100ms);
  Random random(3);
  for (int k = 1; k < 60; ++k) {
    const double update = 0.1 * k + random.Uniform(-0.02, 0.02);
    clock.Changed(At(update - 0.002), At(update + 0.002));
  }
  EXPECT_GT(clock.Latest(At(6.1)).sigma, 5ms);
}

}  // namespace update_clock_test
}  // namespace zeus
