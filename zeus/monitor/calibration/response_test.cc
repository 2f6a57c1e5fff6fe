#include "zeus/monitor/calibration/response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "zeus/base/random.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/monitor/calibration/testing/recorded_gpu.h"

namespace zeus::calibration {
namespace response_test {

using namespace std::chrono_literals;
using namespace zeus::literals;
using ::testing::HasSubstr;
using testing::RecordedGpu;

void ExpectNear(const Estimate& estimate, Seconds truth, Seconds largest_sigma) {
  EXPECT_NEAR(estimate.value.count(), truth.count(), 3 * estimate.sigma.count());
  EXPECT_LT(estimate.sigma, largest_sigma);
}

class ResponseOfModelTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ResponseOfModelTest, InstantPowerIsFoundAsItIs) {
  const sim::SensorSpec& truth = sim::FindGpuModel(GetParam()).value()->sensors;

  const RecordedGpu recording(GetParam(), {});

  const auto response = FitPowerResponse(recording.instant, recording.load);

  ASSERT_TRUE(response.ok()) << response.error().message;
  ExpectNear(response.value().period, truth.power_update, 50us);
  ExpectNear(response.value().window, truth.power_window, 1500us);
  ExpectNear(response.value().delay, 0s, 1500us);
  EXPECT_NEAR(response.value().coverage(), truth.power_window / truth.power_update, 0.1);
}

TEST_P(ResponseOfModelTest, TheCounterCountsAllTimeWithoutDelay) {
  const sim::SensorSpec& truth = sim::FindGpuModel(GetParam()).value()->sensors;
  const RecordedGpu recording(GetParam(), {});

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

TEST(ResponseTest, StatedErrorsCoverTheTruth) {
  constexpr int kBoards = 12;
  for (const char* model : {"A100", "V100"}) {
    SCOPED_TRACE(model);
    const Seconds truth = sim::FindGpuModel(model).value()->sensors.power_window;
    int within_one = 0;
    int within_two = 0;
    for (std::uint64_t seed = 1; seed <= kBoards; ++seed) {
      const RecordedGpu recording(model, {.duration = 6s, .noise = 2_W}, seed);
      const auto response = FitPowerResponse(recording.instant, recording.load);
      ASSERT_TRUE(response.ok()) << response.error().message;
      const Estimate& window = response.value().window;
      within_one += std::abs((window.value - truth) / window.sigma) < 1 ? 1 : 0;
      within_two += std::abs((window.value - truth) / window.sigma) < 2 ? 1 : 0;
    }
    EXPECT_GE(within_one, kBoards / 2);
    EXPECT_GE(within_two, kBoards * 10 / 12);
  }
}

TEST(ResponseTest, OneSecondAverageIsFoundAsSuch) {
  const RecordedGpu recording("H100", {});

  const auto response = FitPowerResponse(recording.average, recording.load);

  ASSERT_TRUE(response.ok()) << response.error().message;
  ExpectNear(response.value().period, 100ms, 50us);
  ExpectNear(response.value().window, 1s, 10ms);
  ExpectNear(response.value().delay, 0s, 10ms);
}

TEST(ResponseTest, ALoadThatReactsLateIsADelay) {
  const RecordedGpu recording("A100", {.command_latency = 42ms});

  const auto power = FitPowerResponse(recording.instant, recording.load);
  const auto counter = FitCounterResponse(recording.counter, recording.load);

  ASSERT_TRUE(power.ok()) << power.error().message;
  ExpectNear(power.value().delay, 42ms, 1500us);
  ExpectNear(power.value().window, 25ms, 1500us);
  ASSERT_TRUE(counter.ok()) << counter.error().message;
  ExpectNear(counter.value().delay, 42ms, 1500us);
}

TEST(ResponseTest, NoiseWidensTheErrorAndDoesNotBias) {
  const RecordedGpu recording("A100", {.noise = 5_W});

  const auto response = FitPowerResponse(recording.instant, recording.load);

  ASSERT_TRUE(response.ok()) << response.error().message;
  ExpectNear(response.value().window, 25ms, 4ms);
  ExpectNear(response.value().delay, 0s, 4ms);
  EXPECT_NEAR(response.value().noise.value(), 5, 1);
}

TEST(ResponseTest, ACommandThatTheLoadMissedIsNoHarm) {
  const RecordedGpu recording("A100", {.missed_command = 31});

  const auto response = FitPowerResponse(recording.instant, recording.load);

  ASSERT_TRUE(response.ok()) << response.error().message;
  ExpectNear(response.value().window, 25ms, 1500us);
  ExpectNear(response.value().delay, 0s, 1500us);
}

TEST(ResponseTest, TooLittleContrastIsSaidWithTheFix) {
  const RecordedGpu recording("A100", {.demand = 56_W});

  const auto response = FitPowerResponse(recording.instant, recording.load);

  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr("not enough contrast"));
  EXPECT_THAT(response.error().message, HasSubstr("heavier load"));
}

TEST(ResponseTest, AShortRecordingAsksForMoreSeconds) {
  const RecordedGpu recording("A100", {.duration = 1s});

  const auto response = FitPowerResponse(recording.instant, recording.load);

  ASSERT_FALSE(response.ok());
  EXPECT_THAT(response.error().message, HasSubstr("--seconds"));
}

TEST(ResponseTest, ASensorThatDoesNotFollowTheLoadIsRefused) {
  Random random(3);
  SensorTrace trace;
  double shown = 0;
  for (int i = 0; i < 20000; ++i) {
    if (i % 100 == 0) shown = random.Uniform(50, 300);
    trace.Add(TimePoint(Seconds(i * 1ms)), shown);
  }
  const RecordedGpu recording("A100", {});

  const auto response = FitPowerResponse(trace, recording.load);

  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
}

TEST(ResponseTest, ASensorWithoutUpdatesIsRefused) {
  const auto response = FitPowerResponse(SensorTrace(), LoadPattern());

  ASSERT_FALSE(response.ok());
  EXPECT_THAT(response.error().message, HasSubstr("0 new values"));
}

}  // namespace response_test
}  // namespace zeus::calibration
