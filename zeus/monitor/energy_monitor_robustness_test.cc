// These tests do to a monitor what sensors, drivers and callers do on a bad day.
#include <gtest/gtest.h>

#include <limits>

#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/monitor/testing/scripted_meter.h"

namespace zeus {
namespace energy_monitor_robustness_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using zeus::testing::RecordUntil;
using zeus::testing::ScriptedMeter;

constexpr TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

// A steady virtual clock whose time of day somebody sets.
class SteppedClock final : public Clock {
 public:
  TimePoint Now() const override { return clock_.Now(); }
  WallTime WallNow() const override { return clock_.WallNow() + step_; }
  void SleepUntil(TimePoint deadline) override { clock_.SleepUntil(deadline); }
  void StepWall(std::chrono::microseconds by) { step_ += by; }

 private:
  VirtualClock clock_;
  std::chrono::microseconds step_{0};
};

// A meter whose counter can be frozen, restarted and read as nonsense.
class TroubledMeter final : public EnergyMeter {
 public:
  explicit TroubledMeter(ScriptedMeter& meter) : meter_(meter) {}
  const std::string& name() const override { return meter_.name(); }
  Result<EnergyReading> Energy() override {
    if (++calls_ % fail_every_ == 0) return Error{ErrorCode::kUnavailable, "busy"};
    auto reading = meter_.Energy();
    if (!reading.ok()) return reading;
    if (frozen_) return *frozen_;
    if (nonsense_) reading.value().total = Joules(std::numeric_limits<double>::quiet_NaN());
    reading.value().epoch = epoch_;
    return reading;
  }
  Result<Watts> Power() override {
    return Error{ErrorCode::kNotSupported, "read power: this device has a counter only"};
  }
  void Freeze() { frozen_ = Energy().value(); }
  void Thaw() { frozen_.reset(); }
  void Restart() { ++epoch_; }
  void SpeakNonsense(bool nonsense) { nonsense_ = nonsense; }
  void FailEvery(int calls) { fail_every_ = calls; }

 private:
  ScriptedMeter& meter_;
  std::optional<EnergyReading> frozen_;
  std::uint64_t epoch_ = 0;
  bool nonsense_ = false;
  int calls_ = 0;
  int fail_every_ = std::numeric_limits<int>::max();
};

class RobustnessTest : public ::testing::Test {
 protected:
  RobustnessTest() { meter_.SetPower(At(-10), 100_W); }

  void Until(EnergyMonitor& monitor, double seconds) { RecordUntil(clock_, monitor, At(seconds)); }
  EnergyEstimate Measure(EnergyMonitor& monitor, double begin, double end) {
    Until(monitor, begin);
    const WindowId id = monitor.BeginWindow("measured").value();
    Until(monitor, end);
    EXPECT_TRUE(monitor.EndWindow("measured").ok());
    return monitor.Refine(id, 5s).value().devices[0].energy.value();
  }

  SteppedClock clock_;
  ScriptedMeter meter_{clock_, {.counter_period = 100ms, .phase = 37ms}};
  TroubledMeter troubled_{meter_};
};

TEST_F(RobustnessTest, ATimeOfDayThatIsSetChangesNoEnergyAndNoDuration_W12) {
  EnergyMonitor monitor(clock_, {{.meter = &meter_}});
  Until(monitor, 1);
  const WindowId id = monitor.BeginWindow("epoch").value();
  Until(monitor, 3);
  clock_.StepWall(-1h);
  Until(monitor, 5);
  clock_.StepWall(2h);
  Until(monitor, 6);
  EXPECT_EQ(monitor.EndWindow("epoch").value().time, 5s);
  const Measurement refined = monitor.Refine(id).value();
  EXPECT_EQ(refined.time, 5s);
  EXPECT_NEAR(refined.Sum().energy.value(), 500, 0.5);
}

TEST_F(RobustnessTest, ReadsThatFailNowAndThenLoseNoEnergy) {
  for (const int calls : {2, 3, 7}) {
    EnergyMonitor monitor(clock_, {{.meter = &troubled_}});
    troubled_.FailEvery(calls);
    const double begin = clock_.Now().time_since_epoch().count() + 1;
    EXPECT_NEAR(Measure(monitor, begin, begin + 5).energy.value(), 500, 10) << calls;
  }
}

TEST_F(RobustnessTest, ADeviceThatAppearsLateCountsFromThen) {
  meter_.Fail(Error{ErrorCode::kUnavailable, "not there yet"});
  EnergyMonitor monitor(clock_, {{.meter = &meter_}});
  Until(monitor, 10);
  meter_.Fail(std::nullopt);
  const EnergyEstimate estimate = Measure(monitor, 10.5, 11.5);
  EXPECT_NEAR(estimate.energy.value(), 100, 1);
  EXPECT_NEAR(monitor.Now(0).total.value().value(), 170, 25);
}

TEST_F(RobustnessTest, ACounterThatStoodStillDoesNotCatchUpInOneWindow) {
  EnergyMonitor monitor(clock_, {{.meter = &troubled_}});
  Until(monitor, 5);
  troubled_.Freeze();
  Until(monitor, 105);
  EXPECT_TRUE(monitor.Now(0).flags.Has(MeasurementFlag::kStaleCounter));
  ASSERT_TRUE(monitor.BeginWindow("still").ok());
  troubled_.Thaw();
  EXPECT_NEAR(Measure(monitor, 105, 107).energy.value(), 200, 30);
}

TEST_F(RobustnessTest, ACounterThatRestartsIsFlagged) {
  EnergyMonitor monitor(clock_, {{.meter = &troubled_}});
  Until(monitor, 2);
  ASSERT_TRUE(monitor.BeginWindow("outer").ok());
  Until(monitor, 3);
  troubled_.Restart();
  Until(monitor, 4);
  const auto estimate = monitor.EndWindow("outer").value().devices[0].energy.value();
  EXPECT_TRUE(estimate.flags.Has(MeasurementFlag::kCounterReset));
}

TEST_F(RobustnessTest, AReadingThatIsNoNumberSpoilsNothingLater) {
  EnergyMonitor monitor(clock_, {{.meter = &troubled_}});
  Until(monitor, 2);
  troubled_.SpeakNonsense(true);
  Until(monitor, 4);
  troubled_.SpeakNonsense(false);
  EXPECT_NEAR(Measure(monitor, 6, 8).energy.value(), 200, 1);
}

TEST_F(RobustnessTest, TheTotalDoesNotJumpWhenOldHistoryIsForgotten) {
  EnergyMonitor monitor(clock_, {{.meter = &meter_}});
  Until(monitor, 1);
  Joules before = monitor.Now(0).total.value();
  for (int second = 2; second < 400; ++second) {
    Until(monitor, second);
    const Joules total = monitor.Now(0).total.value();
    ASSERT_NEAR((total - before).value(), 100, 15) << second;
    before = total;
  }
}

TEST_F(RobustnessTest, AListenerMayUseTheMonitor) {
  EnergyMonitor monitor(clock_, {{.meter = &meter_}});
  int calls = 0;
  monitor.OnRefined([&](const Measurement& result) {
    if (++calls > 1) return;
    EXPECT_TRUE(monitor.RefinedResult(result.id).ok());
    EXPECT_TRUE(monitor.BeginWindow("inner", {.edges = EdgeReading::kSynchronous}).ok());
    monitor.Step();
    EXPECT_TRUE(monitor.EndWindow("inner").ok());
  });
  ASSERT_TRUE(monitor.BeginWindow("outer").ok());
  Until(monitor, 1);
  ASSERT_TRUE(monitor.EndWindow("outer").ok());
  Until(monitor, 2);
  EXPECT_EQ(calls, 2);
}

TEST_F(RobustnessTest, ANewLimitIsFlaggedInWindowsThatItCameIn) {
  sim::SimulatedGpu gpu(clock_, *sim::FindGpuModel("a100").value());
  EnergyMonitor monitor(clock_, {{.meter = &gpu, .gpu = &gpu}});
  Until(monitor, 3);
  ASSERT_TRUE(monitor.BeginWindow("quiet").ok());
  Until(monitor, 6);
  const auto quiet = monitor.EndWindow("quiet").value().devices[0].energy.value();
  EXPECT_FALSE(quiet.flags.Has(MeasurementFlag::kLimitChanged));
  ASSERT_TRUE(monitor.BeginWindow("changed").ok());
  ASSERT_TRUE(gpu.SetPowerLimitWithoutJournal(gpu.CurrentPowerLimit().value().range.min).ok());
  Until(monitor, 9);
  const auto changed = monitor.EndWindow("changed").value().devices[0].energy.value();
  EXPECT_TRUE(changed.flags.Has(MeasurementFlag::kLimitChanged));
}

TEST_F(RobustnessTest, ShortWindowsOnAHotDeviceAreFlaggedAsThrottled) {
  sim::SimulatedGpu gpu(clock_, *sim::FindGpuModel("a100").value());
  gpu.SetAmbient(Celsius(120));
  EnergyMonitor monitor(clock_, {{.meter = &gpu, .gpu = &gpu}});
  Until(monitor, 600);
  ASSERT_TRUE(gpu.CurrentThrottleReasons().value().thermal);
  for (double begin = 600; begin < 602; begin += 0.25) {
    const EnergyEstimate estimate = Measure(monitor, begin, begin + 0.2);
    EXPECT_TRUE(estimate.flags.Has(MeasurementFlag::kThrottled)) << begin;
  }
}

TEST_F(RobustnessTest, WeightsThatCannotBeSharedAreRefused) {
  EnergyMonitor monitor(clock_, {{.meter = &meter_}});
  for (const double weight : {-1.0, 1e-300, 1e308, std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::quiet_NaN()})
    EXPECT_EQ(monitor.BeginWindow("w", {.weight = weight}).error().code,
              ErrorCode::kInvalidArgument);
  EXPECT_TRUE(monitor.BeginWindow("w", {.weight = 0}).ok());
}

TEST_F(RobustnessTest, AResultIsGivenOnceAndUntilThenTheBestThereIs) {
  EnergyMonitor monitor(clock_, {{.meter = &meter_}});
  Until(monitor, 1);
  const WindowId id = monitor.BeginWindow("w").value();
  EXPECT_EQ(monitor.RefinedResult(id).error().code, ErrorCode::kUnavailable);
  Until(monitor, 2);
  ASSERT_TRUE(monitor.EndWindow("w").ok());
  EXPECT_EQ(monitor.Refine(id, 0s).value().stage, Measurement::Stage::kImmediate);
  EXPECT_EQ(monitor.Refine(id, 2s).value().stage, Measurement::Stage::kRefined);
  EXPECT_EQ(monitor.RefinedResult(id).error().code, ErrorCode::kNotFound);
}

TEST_F(RobustnessTest, WindowsBeyondTheLimitCountFromTheirBeginning) {
  EnergyMonitor::Options options;
  options.unsettled_windows = 0;
  EnergyMonitor monitor(clock_, {{.meter = &meter_}}, std::move(options));
  Until(monitor, 100);
  const WindowId id = monitor.BeginWindow("long").value();
  Until(monitor, 500);
  EXPECT_NEAR(monitor.EndWindow("long").value().Sum().energy.value(), 40000, 20);
  EXPECT_EQ(monitor.RefinedResult(id).error().code, ErrorCode::kNotFound);
}

TEST_F(RobustnessTest, NoResultNeedBeKept) {
  EnergyMonitor::Options options;
  options.kept_results = 0;
  EnergyMonitor monitor(clock_, {{.meter = &meter_}}, std::move(options));
  ASSERT_TRUE(monitor.BeginWindow("w").ok());
  Until(monitor, 1);
  ASSERT_TRUE(monitor.EndWindow("w").ok());
  Until(monitor, 2);
  EXPECT_GT(monitor.Accounts(0).device, 0_J);
}

}  // namespace energy_monitor_robustness_test
}  // namespace zeus
