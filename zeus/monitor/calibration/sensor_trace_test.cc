#include "zeus/monitor/calibration/sensor_trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "zeus/base/random.h"

namespace zeus::calibration {
namespace sensor_trace_test {

using namespace std::chrono_literals;

// Polls a sensor that updates every `period`: update i shows value(i).
SensorTrace Poll(Seconds period, Seconds duration, const std::function<double(long)>& value) {
  SensorTrace trace;
  Random random(7);
  for (Seconds now = 0s; now < duration; now += Seconds(random.Uniform(0.0009, 0.0013)))
    trace.Add(TimePoint(now), value(static_cast<long>(std::floor((now + 13ms) / period))));
  return trace;
}

TEST(SensorTraceTest, UpdatePeriodIsFoundWithinItsError) {
  const SensorTrace trace = Poll(101.3ms, 10s, [](long i) { return static_cast<double>(i); });

  const auto period = trace.UpdatePeriod();

  ASSERT_TRUE(period);
  EXPECT_NEAR(period->value.count(), 0.1013, 3 * period->sigma.count());
  EXPECT_LT(period->sigma, 50us);
  EXPECT_NEAR(trace.PollInterval().count(), 0.0011, 0.0001);
}

TEST(SensorTraceTest, UpdatesWithTheSameValueAreNoHarm) {
  // Two updates of three show what the one before showed.
  const SensorTrace trace =
      Poll(20ms, 10s, [](long i) { return static_cast<double>(i % 12 < 5 ? i : 5); });

  const auto period = trace.UpdatePeriod();

  ASSERT_TRUE(period);
  EXPECT_NEAR(period->value.count(), 0.020, 3 * period->sigma.count());
  EXPECT_NEAR(static_cast<double>(trace.Readings(period->value).size()), 500, 15);
}

TEST(SensorTraceTest, RareChangesAreNotTakenForThePeriod) {
  // Changes come in pairs, one update apart, and long after each other.
  const SensorTrace trace = Poll(20ms, 20s, [](long i) {
    const long pairs = i / 13;
    return static_cast<double>(2 * pairs + (i % 13 == 12 ? 1 : 0));
  });

  const auto period = trace.UpdatePeriod();

  ASSERT_TRUE(period);
  EXPECT_NEAR(period->value.count(), 0.020, 3 * period->sigma.count());
}

TEST(SensorTraceTest, AMomentThatWasMissedIsLeftOut) {
  SensorTrace trace;
  for (int i = 0; i < 1000; ++i) {
    if (i >= 480 && i < 540) continue;  // This process did not run.
    const int updates = i / 100;
    trace.Add(TimePoint(Seconds(i * 1ms)), updates);
  }

  const auto period = trace.UpdatePeriod();
  ASSERT_TRUE(period);
  const auto readings = trace.Readings(100ms);

  EXPECT_NEAR(period->value.count(), 0.1, 0.005);
  for (const SensorReading& reading : readings) EXPECT_NE(reading.value, 5);
  EXPECT_EQ(readings.size(), 8U);
}

TEST(SensorTraceTest, AStillSensorHasNoPeriod) {
  SensorTrace trace;
  for (int i = 0; i < 1000; ++i) trace.Add(TimePoint(Seconds(i * 1ms)), 42);

  EXPECT_FALSE(trace.UpdatePeriod());
  EXPECT_TRUE(trace.Readings(1s).empty());
  EXPECT_EQ(trace.changes(), 0);
}

}  // namespace sensor_trace_test
}  // namespace zeus::calibration
