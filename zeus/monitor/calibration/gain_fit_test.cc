#include "zeus/monitor/calibration/gain_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "zeus/monitor/calibration/testing/recorded_gpu.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/monitor/sensor_calibration.h"

namespace zeus::calibration {
namespace gain_fit_test {

using namespace std::chrono_literals;
using namespace zeus::literals;
using ::testing::HasSubstr;
using testing::RecordedGpu;
using testing::Scenario;

Result<GainFit> Fit(const RecordedGpu& gpu, const std::vector<MeterSample>& meter,
                    std::optional<Seconds> delay = std::nullopt) {
  ZEUS_TRY(const Response response, FitPowerResponse(gpu.instant, gpu.load));
  return FitGain({.watts = gpu.instant,
                  .response = response,
                  .load = gpu.load,
                  .end = gpu.end(),
                  .meter = meter,
                  .clocks = gpu.clocks(),
                  .meter_delay = delay});
}

class GainFitOfModelTest : public ::testing::TestWithParam<const char*> {};

TEST_P(GainFitOfModelTest, GainAndOffsetOfTheBoardAreFoundWithinTheirErrors) {
  RecordedGpu gpu(GetParam(), {.period = 1.6s, .meter_interval = 50ms, .meter_noise = 1_W});

  const auto fit = Fit(gpu, gpu.meter);

  ASSERT_TRUE(fit.ok()) << fit.error().message;
  EXPECT_NEAR(fit.value().gain, gpu.truth().gain, 3 * fit.value().gain_sigma);
  EXPECT_LT(fit.value().gain_sigma, 0.004);
  EXPECT_NEAR(fit.value().offset.value(), gpu.truth().offset.value(),
              3 * fit.value().offset_sigma.value());
  EXPECT_LT(fit.value().offset_sigma, 0.6_W);
  EXPECT_GT(fit.value().r_squared, 0.999);
  EXPECT_GT(fit.value().plateaus, 15);
}

INSTANTIATE_TEST_SUITE_P(Models, GainFitOfModelTest,
                         ::testing::Values("V100", "A40", "A100", "H100"),
                         [](const auto& test) { return std::string(test.param); });

TEST(GainFitTest, StatedErrorsCoverTheTruth) {
  constexpr int kBoards = 10;
  int within_one = 0;
  int within_two = 0;
  for (std::uint64_t seed = 1; seed <= kBoards; ++seed) {
    RecordedGpu gpu("V100", {.period = 1.6s, .noise = 2_W, .meter_noise = 2_W}, seed);
    const auto fit = Fit(gpu, gpu.meter);
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    const double off = std::abs(fit.value().gain - gpu.truth().gain) / fit.value().gain_sigma;
    within_one += off < 1 ? 1 : 0;
    within_two += off < 2 ? 1 : 0;
  }
  EXPECT_GE(within_one, kBoards / 2);
  EXPECT_GE(within_two, kBoards * 8 / 10);
}

// Energy of a window of 20 s as a monitor with that profile tells it, over the truth.
double MeasuredOverTruth(RecordedGpu& gpu, const SensorProfile& profile) {
  EnergyMonitor monitor(gpu.clock(), {{.meter = &gpu.gpu(), .gpu = &gpu.gpu(), .sensor = profile}});
  const auto run = [&](Seconds duration) {
    const TimePoint end = gpu.clock().Now() + duration;
    while (gpu.clock().Now() < end) gpu.clock().SleepUntil(std::min(end, monitor.Step()));
  };
  const auto load = gpu.gpu().AttachLoad({.demand = 250_W}).value();
  run(2s);
  const auto id = monitor.BeginWindow("epoch").value();
  const Joules before = gpu.gpu().ExactEnergy();
  run(20s);
  EXPECT_TRUE(monitor.EndWindow("epoch").ok());
  const Joules truth = gpu.gpu().ExactEnergy() - before;
  run(1s);
  gpu.gpu().DetachLoad(load);
  return monitor.RefinedResult(id).value().Sum().energy / truth;
}

TEST(GainFitTest, ACalibratedMonitorTellsTheTruthWhereThePriorDoesNot) {
  RecordedGpu gpu("A100", {.period = 1.6s, .meter_interval = 50ms, .meter_noise = 1_W});
  const auto fit = Fit(gpu, gpu.meter);
  ASSERT_TRUE(fit.ok()) << fit.error().message;
  const SensorProfile prior = PriorProfile(gpu.gpu().identity());
  const SensorCalibration calibration{
      .gpu = gpu.gpu().identity(),
      .taken_at = {},
      .instant_power = FitPowerResponse(gpu.instant, gpu.load).value(),
      .average_power = std::nullopt,
      .counter = FitCounterResponse(gpu.counter, gpu.load).value(),
      .meter = SensorCalibration::MeterComparison{.fit = fit.value()}};

  const double uncalibrated = MeasuredOverTruth(gpu, prior);
  const double calibrated = MeasuredOverTruth(gpu, ApplyCalibration(prior, calibration));

  ASSERT_GT(std::abs(gpu.truth().gain - 1), 0.01) << "choose a board that is wrong";
  EXPECT_GT(std::abs(uncalibrated - 1), 0.01);
  EXPECT_NEAR(calibrated, 1, 0.003);
}

TEST(GainFitTest, ALateMeterIsShifted) {
  RecordedGpu gpu("A100", {.period = 1.6s, .meter_interval = 50ms, .meter_delay = 3.7s});

  const auto fit = Fit(gpu, gpu.meter);

  ASSERT_TRUE(fit.ok()) << fit.error().message;
  EXPECT_NEAR(fit.value().meter_delay.count(), 3.7, 0.05);
  EXPECT_NEAR(fit.value().gain, gpu.truth().gain, 0.002);
}

TEST(GainFitTest, AGivenDelayIsTaken) {
  RecordedGpu gpu("A100", {.period = 1.6s, .meter_interval = 50ms, .meter_delay = 0.4s});

  const auto fit = Fit(gpu, gpu.meter, 0.4s);

  ASSERT_TRUE(fit.ok()) << fit.error().message;
  EXPECT_DOUBLE_EQ(fit.value().meter_delay.count(), 0.4);
  EXPECT_NEAR(fit.value().gain, gpu.truth().gain, 0.002);
}

TEST(GainFitTest, OtherConsumersShiftTheOffsetAndLeaveTheGain) {
  RecordedGpu gpu("A100", {.period = 1.6s, .meter_interval = 50ms, .other_consumers = 150_W});

  const auto fit = Fit(gpu, gpu.meter);

  ASSERT_TRUE(fit.ok()) << fit.error().message;
  EXPECT_NEAR(fit.value().gain, gpu.truth().gain, 0.002);
  EXPECT_NEAR(fit.value().offset.value(), -150 * gpu.truth().gain + gpu.truth().offset.value(), 1);
}

TEST(GainFitTest, ALogOfAnotherTimeIsRefused) {
  const RecordedGpu gpu("A100", {.period = 1.6s});
  std::vector<MeterSample> meter = gpu.meter;
  for (MeterSample& sample : meter) sample.time += 1h;

  const auto fit = Fit(gpu, meter);

  ASSERT_FALSE(fit.ok());
  EXPECT_EQ(fit.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(fit.error().message, HasSubstr("no time in common"));
  EXPECT_THAT(fit.error().message, HasSubstr("2023-04-17T01:00:"));
}

TEST(GainFitTest, AMeterOfSomethingElseIsRefused) {
  const RecordedGpu gpu("A100", {.period = 1.6s});
  std::vector<MeterSample> meter = gpu.meter;
  Random random(1);
  for (MeterSample& sample : meter) sample.power = Watts(random.Uniform(100, 200));

  const auto fit = Fit(gpu, meter);

  ASSERT_FALSE(fit.ok());
  EXPECT_THAT(fit.error().message, HasSubstr("does not show the load"));
}

TEST(GainFitTest, OneLevelIsNotEnough) {
  const RecordedGpu gpu("A100", {.period = 1.6s});
  std::vector<MeterSample> meter = gpu.meter;
  for (MeterSample& sample : meter) sample.power = 60_W;

  const auto fit = Fit(gpu, meter, 0s);

  ASSERT_FALSE(fit.ok());
  EXPECT_THAT(fit.error().message, HasSubstr("one level only"));
}

TEST(GainFitTest, ASlowMeterIsAskedToLogMoreOften) {
  const RecordedGpu gpu("A100", {.period = 0.5s, .meter_interval = 1s});

  const auto fit = Fit(gpu, gpu.meter, 0s);

  ASSERT_FALSE(fit.ok());
  EXPECT_EQ(fit.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(fit.error().message, HasSubstr("too few"));
}

TEST(GainFitTest, AnEmptyLogIsRefused) {
  const RecordedGpu gpu("A100", {.duration = 5s});

  const auto fit = Fit(gpu, {});

  ASSERT_FALSE(fit.ok());
  EXPECT_THAT(fit.error().message, HasSubstr("empty"));
}

}  // namespace gain_fit_test
}  // namespace zeus::calibration
