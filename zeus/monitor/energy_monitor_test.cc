#include "zeus/monitor/energy_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "zeus/monitor/testing/scripted_meter.h"

namespace zeus {
namespace energy_monitor_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using ::testing::HasSubstr;
using zeus::testing::RecordUntil;
using zeus::testing::ScriptedMeter;

constexpr TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

class EnergyMonitorTest : public ::testing::Test {
 protected:
  // Records until `seconds`.
  void Until(EnergyMonitor& monitor, double seconds) { RecordUntil(clock_, monitor, At(seconds)); }

  VirtualClock clock_;
};

ScriptedMeter::Sensor Counter() { return {.counter_period = 100ms, .phase = 37ms}; }
ScriptedMeter::Sensor PowerOnly() {
  return {.counter_period = std::nullopt, .power_period = 20ms, .power_window = 10ms, .phase = 3ms};
}
SensorProfile MakeProfile(const ScriptedMeter::Sensor& sensor) {
  SensorProfile profile;
  profile.counter_period = sensor.counter_period.value_or(Seconds(0.1));
  profile.power_period = sensor.power_period;
  profile.power_window = sensor.power_window;
  return profile;
}

TEST_F(EnergyMonitorTest, WindowEnergyIsPowerTimesTime) {
  ScriptedMeter meter(clock_, Counter());
  meter.SetPower(At(0), 250_W);
  EnergyMonitor monitor(clock_, {{.meter = &meter}});
  Until(monitor, 2);
  const auto id = monitor.BeginWindow("epoch");
  ASSERT_TRUE(id.ok());
  Until(monitor, 12);
  const auto immediate = monitor.EndWindow("epoch");
  ASSERT_TRUE(immediate.ok());
  EXPECT_EQ(immediate.value().time, 10s);
  EXPECT_NEAR(immediate.value().Sum().energy.value(), 2500, 5);
  const auto refined = monitor.Refine(id.value());
  ASSERT_TRUE(refined.ok()) << refined.error().message;
  EXPECT_NEAR(refined.value().Sum().energy.value(), 2500, 0.5);
  EXPECT_EQ(refined.value().devices[0].energy.value().updates, 100);
}

TEST_F(EnergyMonitorTest, AnOpenWindowCanBeLookedAt) {
  ScriptedMeter meter(clock_, Counter());
  meter.SetPower(At(0), 250_W);
  EnergyMonitor monitor(clock_, {{.meter = &meter}});
  Until(monitor, 2);
  ASSERT_TRUE(monitor.BeginWindow("epoch").ok());
  Until(monitor, 6);

  const auto so_far = monitor.PeekWindow("epoch");

  ASSERT_TRUE(so_far.ok());
  EXPECT_EQ(so_far.value().time, 4s);
  EXPECT_NEAR(so_far.value().Sum().energy.value(), 1000, 5);
  Until(monitor, 12);
  EXPECT_EQ(monitor.EndWindow("epoch").value().time, 10s);
  EXPECT_EQ(monitor.PeekWindow("epoch").error().code, ErrorCode::kNotFound);
}

TEST_F(EnergyMonitorTest, TheGainOfASensorIsSharedByAllWindows) {
  ScriptedMeter meter(clock_, Counter());
  meter.SetPower(At(0), 100_W);
  SensorProfile sensor = MakeProfile(Counter());
  sensor.gain_sigma = 0.03;
  sensor.offset_sigma = 4_W;
  EnergyMonitor monitor(clock_, {{.meter = &meter, .sensor = sensor}});
  Until(monitor, 2);
  const WindowId id = monitor.BeginWindow("epoch").value();
  Until(monitor, 12);
  ASSERT_TRUE(monitor.EndWindow("epoch").ok());

  const Measurement::Total total = monitor.Refine(id).value().Sum();

  EXPECT_NEAR(total.shared_sigma.value(), 50, 0.1);  // 3 % of 1000 J, and 4 W for 10 s.
  EXPECT_GE(total.sigma, total.shared_sigma);
  EXPECT_LT(total.sigma, 60_J);
}

TEST_F(EnergyMonitorTest, AConstantPowerThenAStepIsNotARamp_W1) {
  ScriptedMeter meter(clock_, PowerOnly());
  meter.SetPower(At(0), 100_W);
  meter.SetPower(At(11), 300_W);
  EnergyMonitor monitor(clock_, {{.meter = &meter, .sensor = MakeProfile(PowerOnly())}});
  Until(monitor, 1);
  const WindowId id = monitor.BeginWindow("plateau").value();
  Until(monitor, 11);
  EXPECT_NEAR(monitor.EndWindow("plateau").value().Sum().energy.value(), 1000, 3);
  const WindowId after = monitor.BeginWindow("after").value();
  Until(monitor, 12);
  EXPECT_TRUE(monitor.EndWindow("after").ok());
  // An update of this sensor at 300 W is 6 J; a ramp would give 2000 J.
  EXPECT_NEAR(monitor.Refine(id).value().Sum().energy.value(), 1000, 3);
  EXPECT_NEAR(monitor.Refine(after).value().Sum().energy.value(), 300, 3);
}

TEST_F(EnergyMonitorTest, ConstantPowerOnAPowerOnlyDeviceIsPowerTimesTime_W1) {
  ScriptedMeter meter(clock_, PowerOnly());
  meter.SetPower(At(0), 100_W);
  EnergyMonitor monitor(clock_, {{.meter = &meter, .sensor = MakeProfile(PowerOnly())}});
  const WindowId id = monitor.BeginWindow("steady").value();
  Until(monitor, 10);
  EXPECT_NEAR(monitor.EndWindow("steady").value().Sum().energy.value(), 1000, 1);
  const Measurement refined = monitor.Refine(id).value();
  EXPECT_NEAR(refined.Sum().energy.value(), 1000, 0.1);
  EXPECT_EQ(refined.devices[0].energy.value().source, EnergySource::kIntegrated);
}

TEST_F(EnergyMonitorTest, ADeviceThatCannotBeReadHasAReasonNeverAZero_W3) {
  ScriptedMeter meter(clock_, Counter());
  meter.Fail(Error{ErrorCode::kUnavailable, "GPU is lost"});
  EnergyMonitor monitor(clock_, {{.meter = &meter}});
  const WindowId id = monitor.BeginWindow("epoch").value();
  Until(monitor, 1);
  const Measurement immediate = monitor.EndWindow("epoch").value();
  ASSERT_FALSE(immediate.devices[0].energy.ok());
  EXPECT_THAT(immediate.devices[0].energy.error().message, HasSubstr("GPU is lost"));
  EXPECT_EQ(immediate.Sum().missing, std::vector<std::string>{"gpu:0"});
  EXPECT_FALSE(monitor.Refine(id).value().devices[0].energy.ok());
}

TEST_F(EnergyMonitorTest, ADeviceLostMidwayGivesAFlaggedPart) {
  ScriptedMeter meter(clock_, Counter());
  meter.SetPower(At(0), 200_W);
  EnergyMonitor monitor(clock_, {{.meter = &meter}});
  Until(monitor, 1);
  const WindowId id = monitor.BeginWindow("epoch").value();
  Until(monitor, 3);
  meter.Fail(Error{ErrorCode::kUnavailable, "GPU is lost"});
  Until(monitor, 5);
  EXPECT_TRUE(monitor.EndWindow("epoch").ok());
  const Measurement refined = monitor.Refine(id, 3s).value();
  const EnergyEstimate& estimate = refined.devices[0].energy.value();
  EXPECT_TRUE(estimate.flags.Has(MeasurementFlag::kPartial));
  EXPECT_NEAR(estimate.energy.value(), 400, 25);
  EXPECT_NEAR(estimate.coverage, 0.5, 0.05);
  EXPECT_GT(estimate.sigma, 100_J);
}

TEST_F(EnergyMonitorTest, PowerIsNotDrawnThroughTimeInWhichNobodyAnswered) {
  ScriptedMeter meter(clock_, Counter());
  meter.SetPower(At(0), 200_W);
  EnergyMonitor monitor(clock_, {{.meter = &meter}});
  Until(monitor, 3);
  meter.Fail(Error{ErrorCode::kUnavailable, "GPU is lost"});
  Until(monitor, 8);
  meter.Fail(std::nullopt);
  Until(monitor, 11);

  const auto power = [&](double begin, double end) {
    return monitor.History(0, EnergyMonitor::Quantity::kPower, At(begin), At(end));
  };
  EXPECT_TRUE(power(4, 7.5).empty());
  ASSERT_FALSE(power(1, 2).empty());
  EXPECT_NEAR(power(1, 2).front().value, 200, 1);
  EXPECT_FALSE(power(9, 10).empty());
}

// Polls that come right before the updates, time and again, say little about when these come. They
// must not make the recorder forget the polls that did: the power was off by half for an update.
TEST_F(EnergyMonitorTest, ASteadyPowerStaysWhateverThePhaseOfTheSensor) {
  for (int i = 0; i < 40; ++i) {
    VirtualClock clock;
    const Seconds phase = 250us * i;
    ScriptedMeter meter(clock, {.counter_period = 100ms, .phase = phase});
    meter.SetPower(At(0), 200_W);
    EnergyMonitor monitor(clock, {{.meter = &meter}});
    while (clock.Now() < At(12)) {
      // Another user of the recorder, say another device, makes the recorder look every 50 ms.
      const double now = clock.Now().time_since_epoch().count();
      const TimePoint other = At(0.05 * (std::floor(now / 0.05 + 1e-6) + 1));
      clock.SleepUntil(std::min(monitor.Step(), other));
      if (clock.Now() < At(2)) continue;
      ASSERT_NEAR(monitor.Now(0).power.value().value(), 200, 20)
          << "at " << clock.Now().time_since_epoch().count() << " s, phase " << phase.count();
    }
  }
}

// Idle, but for 40 ms of work before 3 s.
void WriteWorkBefore3s(ScriptedMeter& meter) {
  meter.SetPower(At(0), 60_W);
  meter.SetPower(At(2.96), 300_W);
  meter.SetPower(At(3), 60_W);
}
constexpr double kWork = 60 * 1 + 240 * 0.04;

TEST_F(EnergyMonitorTest, AWaitThatTookTimeSaysThatWorkEndedThere) {
  ScriptedMeter meter(clock_, Counter());
  WriteWorkBefore3s(meter);
  EnergyMonitor monitor(clock_, {{.meter = &meter}}, {.synchronize = [&] {
                          if (clock_.Now() > At(2.9)) clock_.SleepUntil(At(3));
                        }});
  Until(monitor, 2);
  const WindowId id = monitor.BeginWindow("step").value();
  Until(monitor, 2.97);
  ASSERT_EQ(monitor.EndWindow("step").value().time, 1s);
  EXPECT_NEAR(monitor.Refine(id).value().Sum().energy.value(), kWork, 2);
}

TEST_F(EnergyMonitorTest, ACallerMaySayThatWorkEnded) {
  for (const WindowEnd end : {WindowEnd::kPlain, WindowEnd::kWorkEnded}) {
    VirtualClock clock;
    ScriptedMeter meter(clock, Counter());
    WriteWorkBefore3s(meter);
    EnergyMonitor monitor(clock, {{.meter = &meter}});
    const auto until = [&](double seconds) { RecordUntil(clock, monitor, At(seconds)); };
    until(2);
    const WindowId id = monitor.BeginWindow("step").value();
    until(3);
    ASSERT_TRUE(monitor.EndWindow("step", end).ok());
    const auto total = monitor.Refine(id).value().Sum();
    EXPECT_NEAR(total.energy.value(), kWork, 1.96 * total.sigma.value());
    EXPECT_NEAR(total.energy.value(), kWork, end == WindowEnd::kWorkEnded ? 2 : 8);
  }
}

TEST_F(EnergyMonitorTest, ACallerMaySayThatWorkEndedBeforeTheBegin) {
  for (const WindowEnd before : {WindowEnd::kPlain, WindowEnd::kWorkEnded}) {
    VirtualClock clock;
    ScriptedMeter meter(clock, Counter());
    WriteWorkBefore3s(meter);
    EnergyMonitor monitor(clock, {{.meter = &meter}});
    const auto until = [&](double seconds) { RecordUntil(clock, monitor, At(seconds)); };
    until(2);
    const WindowId work = monitor.BeginWindow("work").value();
    until(3);
    // The end does not say it: the begin of the next window at the same moment does.
    ASSERT_TRUE(monitor.EndWindow("work").ok());
    ASSERT_TRUE(monitor.BeginWindow("after", {.at_begin = before}).ok());
    EXPECT_EQ(monitor.edges_after_work(), before == WindowEnd::kWorkEnded ? 1U : 0U);
    until(4);
    const auto total = monitor.Refine(work).value().Sum();
    EXPECT_NEAR(total.energy.value(), kWork, before == WindowEnd::kWorkEnded ? 2 : 8);
    ASSERT_TRUE(monitor.EndWindow("after").ok());
  }
}

TEST_F(EnergyMonitorTest, AnImmediateResultAfterASteadyLoadIsAPreview) {
  ScriptedMeter meter(clock_, Counter());
  meter.SetPower(At(0), 60_W);
  EnergyMonitor monitor(clock_, {{.meter = &meter, .highest_power = 400_W}});
  Until(monitor, 8);
  const WindowId id = monitor.BeginWindow("step").value();
  Until(monitor, 9.03);
  const auto preview = [](const Measurement& result) {
    return result.devices[0].energy.value().flags.Has(MeasurementFlag::kPreview);
  };
  EXPECT_TRUE(preview(monitor.EndWindow("step").value()));
  EXPECT_FALSE(preview(monitor.Refine(id).value()));
}

TEST_F(EnergyMonitorTest, MistakesAreOneSentence) {
  ScriptedMeter meter(clock_, Counter());
  meter.SetPower(At(0), 100_W);
  EnergyMonitor monitor(clock_, {{.meter = &meter}});
  EXPECT_EQ(monitor.EndWindow("never").error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(monitor.BeginWindow("epoch").ok());
  EXPECT_EQ(monitor.BeginWindow("epoch").error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(monitor.BeginWindow("epoch", {.if_open = IfOpen::kRestart}).ok());
  EXPECT_TRUE(monitor.EndWindow("epoch").ok());
  EXPECT_EQ(monitor.EndWindow("epoch").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(monitor.CancelWindow("epoch").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(monitor.RefinedResult(WindowId(99)).error().code, ErrorCode::kNotFound);
}

TEST_F(EnergyMonitorTest, NestedWindowsSplitWhatTheyShare) {
  ScriptedMeter meter(clock_, Counter());
  meter.SetPower(At(0), 100_W);
  EnergyMonitor monitor(clock_, {{.meter = &meter}});
  Until(monitor, 1);
  const WindowId outer = monitor.BeginWindow("epoch").value();
  Until(monitor, 3);
  const WindowId inner = monitor.BeginWindow("step").value();
  Until(monitor, 4);
  EXPECT_TRUE(monitor.EndWindow("step").ok());
  Until(monitor, 6);
  EXPECT_TRUE(monitor.EndWindow("epoch").ok());
  const Measurement whole = monitor.Refine(outer).value();
  const Measurement part = monitor.Refine(inner).value();
  EXPECT_NEAR(whole.Sum().energy.value(), 500, 0.1);
  EXPECT_NEAR(whole.Sum().attributed.value(), 400, 0.1);
  EXPECT_NEAR(part.Sum().attributed.value(), 100, 0.1);
}

}  // namespace energy_monitor_test
}  // namespace zeus
