#include "zeus/monitor/calibration/response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "zeus/base/random.h"
#include "zeus/device/sim/simulated_gpu.h"

namespace zeus::calibration {
namespace {

using namespace std::chrono_literals;
using namespace zeus::literals;
using ::testing::HasSubstr;

struct Scenario {
  Seconds period = 0.5s;
  Seconds duration = 20s;
  Watts demand = 220_W;
  Seconds command_latency = 0s;  // From the command to the load.
  Watts noise = 0_W;
  int missed_command = -1;
};

struct Recording {
  LoadPattern load;
  SensorTrace instant;
  SensorTrace average;
  SensorTrace counter;
};

// A simulated GPU under a square wave, polled as `zeus calibrate` does.
class ResponseTest : public ::testing::Test {
 protected:
  Recording Record(std::string_view model, const Scenario& scenario = {}) {
    sim::SimulatedGpu gpu(clock_, *sim::FindGpuModel(model).value(), {.seed = 5, .index = 0});
    Recording recording;
    std::uint32_t load = 0;
    int command = 0;
    for (const Seconds length : SquareWave(scenario.period, scenario.duration)) {
      const bool busy = command % 2 == 1;
      recording.load.Add(clock_.Now(), busy ? LoadState::kBusy : LoadState::kIdle);
      Watch(gpu, scenario, scenario.command_latency, recording);
      if (command != scenario.missed_command) {
        gpu.DetachLoad(load);
        if (busy) load = gpu.AttachLoad({.demand = scenario.demand}).value();
      }
      Watch(gpu, scenario, length - scenario.command_latency, recording);
      ++command;
    }
    return recording;
  }

  Random random_{3};

 private:
  // As drivers tell power.
  static double WholeMilli(Watts power) { return std::round(power.ToMilli()) / 1e3; }

  void Watch(sim::SimulatedGpu& gpu, const Scenario& scenario, Seconds duration,
             Recording& recording) {
    const TimePoint end = clock_.Now() + duration;
    while (clock_.Now() < end) {
      const TimePoint now = clock_.Now();
      if (const auto power = gpu.Power(PowerKind::kInstant); power.ok()) {
        if (power.value() != shown_) noise_ = scenario.noise * random_.Normal();
        shown_ = power.value();
        recording.instant.Add(now, WholeMilli(shown_ + noise_));
      }
      if (const auto power = gpu.Power(PowerKind::kOneSecondAverage); power.ok())
        recording.average.Add(now, WholeMilli(power.value()));
      if (const auto energy = gpu.TotalEnergy(); energy.ok())
        recording.counter.Add(now, energy.value().value());
      clock_.SleepUntil(std::min(end, now + Seconds(random_.Uniform(0.0008, 0.0014))));
    }
  }

  VirtualClock clock_;
  Watts shown_{};
  Watts noise_{};
};

void ExpectNear(const Estimate& estimate, Seconds truth, Seconds largest_sigma) {
  EXPECT_NEAR(estimate.value.count(), truth.count(), 3 * estimate.sigma.count());
  EXPECT_LT(estimate.sigma, largest_sigma);
}

class ResponseOfModelTest : public ResponseTest,
                            public ::testing::WithParamInterface<const char*> {};

TEST_P(ResponseOfModelTest, InstantPowerIsFoundAsItIs) {
  const sim::SensorSpec& truth = sim::FindGpuModel(GetParam()).value()->sensors;

  const auto response = [&] {
    const Recording recording = Record(GetParam());
    return FitPowerResponse(recording.instant, recording.load);
  }();

  ASSERT_TRUE(response.ok()) << response.error().message;
  ExpectNear(response.value().period, truth.power_update, 50us);
  ExpectNear(response.value().window, truth.power_window, 1500us);
  ExpectNear(response.value().delay, 0s, 1500us);
  EXPECT_NEAR(response.value().coverage(), truth.power_window / truth.power_update, 0.1);
}

TEST_P(ResponseOfModelTest, TheCounterCountsAllTimeWithoutDelay) {
  const sim::SensorSpec& truth = sim::FindGpuModel(GetParam()).value()->sensors;
  const Recording recording = Record(GetParam());

  const auto response = FitCounterResponse(recording.counter, recording.load);

  ASSERT_EQ(response.ok(), truth.counter_update.has_value());
  if (!truth.counter_update) return;
  ExpectNear(response.value().period, *truth.counter_update, 50us);
  ExpectNear(response.value().window, *truth.counter_update, 1500us);
  ExpectNear(response.value().delay, 0s, 1500us);
}

INSTANTIATE_TEST_SUITE_P(Models, ResponseOfModelTest,
                         ::testing::Values("P100", "V100", "RTX6000", "A40", "A100", "H100"),
                         [](const auto& test) { return std::string(test.param); });

TEST_F(ResponseTest, OneSecondAverageIsFoundAsSuch) {
  const Recording recording = Record("H100");

  const auto response = FitPowerResponse(recording.average, recording.load);

  ASSERT_TRUE(response.ok()) << response.error().message;
  ExpectNear(response.value().period, 100ms, 50us);
  ExpectNear(response.value().window, 1s, 10ms);
  ExpectNear(response.value().delay, 0s, 10ms);
}

TEST_F(ResponseTest, ALoadThatReactsLateIsADelay) {
  const Recording recording = Record("A100", {.command_latency = 42ms});

  const auto power = FitPowerResponse(recording.instant, recording.load);
  const auto counter = FitCounterResponse(recording.counter, recording.load);

  ASSERT_TRUE(power.ok()) << power.error().message;
  ExpectNear(power.value().delay, 42ms, 1500us);
  ExpectNear(power.value().window, 25ms, 1500us);
  ASSERT_TRUE(counter.ok()) << counter.error().message;
  ExpectNear(counter.value().delay, 42ms, 1500us);
}

TEST_F(ResponseTest, NoiseWidensTheErrorAndDoesNotBias) {
  const Recording recording = Record("A100", {.noise = 5_W});

  const auto response = FitPowerResponse(recording.instant, recording.load);

  ASSERT_TRUE(response.ok()) << response.error().message;
  ExpectNear(response.value().window, 25ms, 4ms);
  ExpectNear(response.value().delay, 0s, 4ms);
  EXPECT_NEAR(response.value().noise.value(), 5, 1);
}

TEST_F(ResponseTest, ACommandThatTheLoadMissedIsNoHarm) {
  const Recording recording = Record("A100", {.missed_command = 31});

  const auto response = FitPowerResponse(recording.instant, recording.load);

  ASSERT_TRUE(response.ok()) << response.error().message;
  ExpectNear(response.value().window, 25ms, 1500us);
  ExpectNear(response.value().delay, 0s, 1500us);
}

TEST_F(ResponseTest, TooLittleContrastIsSaidWithTheFix) {
  const Recording recording = Record("A100", {.demand = 56_W});

  const auto response = FitPowerResponse(recording.instant, recording.load);

  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr("not enough contrast"));
  EXPECT_THAT(response.error().message, HasSubstr("heavier load"));
}

TEST_F(ResponseTest, AShortRecordingAsksForMoreSeconds) {
  const Recording recording = Record("A100", {.duration = 1s});

  const auto response = FitPowerResponse(recording.instant, recording.load);

  ASSERT_FALSE(response.ok());
  EXPECT_THAT(response.error().message, HasSubstr("--seconds"));
}

TEST_F(ResponseTest, ASensorThatDoesNotFollowTheLoadIsRefused) {
  SensorTrace trace;
  double shown = 0;
  for (int i = 0; i < 20000; ++i) {
    if (i % 100 == 0) shown = random_.Uniform(50, 300);
    trace.Add(TimePoint(Seconds(i * 1ms)), shown);
  }
  const Recording recording = Record("A100");

  const auto response = FitPowerResponse(trace, recording.load);

  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
}

TEST_F(ResponseTest, ASensorWithoutUpdatesIsRefused) {
  const auto response = FitPowerResponse(SensorTrace(), LoadPattern());

  ASSERT_FALSE(response.ok());
  EXPECT_THAT(response.error().message, HasSubstr("0 new values"));
}

}  // namespace
}  // namespace zeus::calibration
