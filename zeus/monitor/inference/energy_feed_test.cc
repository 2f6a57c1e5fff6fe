#include "zeus/monitor/inference/energy_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/random.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/device/sim/testing/loads.h"
#include "zeus/monitor/testing/scripted_meter.h"

namespace zeus {
namespace energy_feed_test {

using namespace zeus::literals;
using namespace std::chrono_literals;

constexpr TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

class EnergyFeedTest : public ::testing::Test {
 protected:
  // Runs the recorder and the feed together, each at the moments that it asks for.
  void Until(EnergyMonitor& monitor, InferenceEnergyFeed& feed, double seconds) {
    TimePoint feed_due = clock_.Now();
    while (true) {
      const TimePoint monitor_due = monitor.Step();
      if (clock_.Now() >= feed_due) feed_due = feed.Step(clock_.Now());
      const TimePoint next = std::min(monitor_due, feed_due);
      if (next > At(seconds)) break;
      clock_.SleepUntil(next);
    }
    clock_.SleepUntil(At(seconds));
  }

  VirtualClock clock_;
  InferenceAttribution attribution_;
};

TEST_F(EnergyFeedTest, IntervalsAddUpToTheEnergyOfTheGroup) {
  sim::SimulatedGpu first(clock_, sim::testing::Model("H100"), {.seed = 1, .index = 0});
  sim::SimulatedGpu second(clock_, sim::testing::Model("H100"), {.seed = 2, .index = 1});
  EnergyMonitor monitor(clock_,
                        {{.meter = &first, .gpu = &first}, {.meter = &second, .gpu = &second}});
  InferenceEnergyFeed feed(monitor, {0, 1}, attribution_);
  double until = 0;
  while (!feed.told_until()) Until(monitor, feed, until += 0.05);
  const TimePoint from = *feed.told_until();
  ASSERT_TRUE(first.AttachLoad(sim::testing::DrawFor(10s, 400_W)).ok());
  Until(monitor, feed, 20);
  const TimePoint end = feed.told_until().value();
  EXPECT_GT(end, At(19)) << "the feed stays some updates of the sensor behind, not more";
  const Joules told = feed.told();
  const Joules recorded = monitor.EnergyBetween(0, from, end).value().energy +
                          monitor.EnergyBetween(1, from, end).value().energy;
  EXPECT_GT(told, 5000_J);
  // The attribution settles an interval when it has heard of everything in it.
  EXPECT_NEAR(attribution_.accounts().measured / told, 1, 0.02);
  EXPECT_NEAR(told / recorded, 1, 1e-9);
  // The simulated boards' own error of gain is a few per cent.
  const Joules after = 140_W * (At(20) - end);
  EXPECT_NEAR(told / (first.ExactEnergy() + second.ExactEnergy() - after), 1, 0.05);
}

TEST_F(EnergyFeedTest, NothingIsLostOrCountedTwiceOverManyIntervals) {
  testing::ScriptedMeter meter(clock_, {.counter_period = 100ms, .phase = 37ms});
  for (int i = 0; i < 100; ++i) meter.SetPower(At(0.3 * i), i % 2 == 0 ? 100_W : 500_W);
  EnergyMonitor monitor(clock_, {{.meter = &meter}});
  InferenceEnergyFeed feed(monitor, {0}, attribution_, {.interval = 50ms});
  Until(monitor, feed, 1);
  const TimePoint from = feed.told_until().value();
  const Joules before = feed.told();
  Until(monitor, feed, 29);
  const TimePoint until = feed.told_until().value();
  const Joules told = feed.told() - before;
  const Joules exact = meter.ExactEnergy(from, until);
  EXPECT_NEAR(told / exact, 1, 0.005);
  EXPECT_NEAR(told / monitor.EnergyBetween(0, from, until).value().energy, 1, 1e-9);
}

// A recorder that other processes keep from running reads the sensor now and then only.
TEST_F(EnergyFeedTest, StarvedRecorderDelaysTheEnergyAndChangesNoSum) {
  testing::ScriptedMeter meter(clock_, {.counter_period = 100ms, .phase = 37ms});
  for (int i = 0; i < 400; ++i) meter.SetPower(At(0.3 * i), i % 2 == 0 ? 100_W : 600_W);
  EnergyMonitor monitor(clock_, {{.meter = &meter}});
  InferenceEnergyFeed feed(monitor, {0}, attribution_);
  Until(monitor, feed, 2);
  const TimePoint from = feed.told_until().value();
  const Joules before = feed.told();
  Random random(3);
  while (clock_.Now() < At(100)) {
    // The thread of the feed goes on while the recorder stands still.
    const TimePoint awake = clock_.Now() + Seconds(random.Uniform(0.5, 7));
    while (clock_.Now() < awake) {
      clock_.SleepUntil(clock_.Now() + 20ms);
      feed.Step(clock_.Now());
    }
    Until(monitor, feed, clock_.Now().time_since_epoch().count() + random.Uniform(0.1, 3));
  }
  Until(monitor, feed, 110);
  const TimePoint until = feed.told_until().value();
  EXPECT_GT(until, At(109));
  const Joules told = feed.told() - before;
  EXPECT_NEAR(told / monitor.EnergyBetween(0, from, until).value().energy, 1, 1e-9);
  EXPECT_NEAR(told / meter.ExactEnergy(from, until), 1, 0.005);
  // Nothing was given up, so all of it was divided.
  EXPECT_NEAR(attribution_.accounts().idle / told, 1, 0.05);
}

TEST_F(EnergyFeedTest, IntervalsOfALostDeviceAreUnknownAndTheOthersAddUp) {
  testing::ScriptedMeter meter(clock_, {.counter_period = 100ms});
  meter.SetPower(At(0), 300_W);
  EnergyMonitor monitor(clock_, {{.meter = &meter}});
  InferenceEnergyFeed feed(monitor, {0}, attribution_);
  Until(monitor, feed, 10);
  const TimePoint from = feed.told_until().value();
  const Joules before = feed.told();
  meter.Fail(Error{ErrorCode::kUnavailable, "lost"});
  Until(monitor, feed, 25);
  EXPECT_GT(feed.told_until().value(), At(15)) << "time goes on without the device";
  EXPECT_LT(feed.told() - before, 300_W * 2s);
  meter.Fail(std::nullopt);
  Until(monitor, feed, 40);
  const TimePoint until = feed.told_until().value();
  EXPECT_GT(until, At(38));
  const Joules told = feed.told() - before;
  EXPECT_NEAR(told / monitor.EnergyBetween(0, from, until).value().energy, 1, 1e-6);
  EXPECT_NEAR(attribution_.accounts().measured / feed.told(), 1, 0.05);
}

}  // namespace energy_feed_test
}  // namespace zeus
