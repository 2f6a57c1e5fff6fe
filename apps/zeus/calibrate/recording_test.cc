#include "apps/zeus/calibrate/recording.h"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/monitor/calibration/response.h"

namespace zeus::cli {
namespace recording_test {

using namespace std::chrono_literals;
using namespace zeus::literals;
using calibration::LoadState;

// A load on a simulated GPU of this process that fails after `works` switches.
class LocalLoad final : public SwitchedLoad {
 public:
  explicit LocalLoad(sim::SimulatedGpu& gpu, int works = 1'000'000) : gpu_(gpu), left_(works) {}
  ~LocalLoad() override { gpu_.DetachLoad(id_); }

  Status Switch(LoadState state) override {
    if (left_-- == 0) return Error{ErrorCode::kUnavailable, "the load is gone"};
    gpu_.DetachLoad(id_);
    if (state == LoadState::kIdle) return Ok();
    ZEUS_TRY(id_, gpu_.AttachLoad({.demand = 200_W}));
    return Ok();
  }

 private:
  sim::SimulatedGpu& gpu_;
  std::uint32_t id_ = 0;
  int left_;
};

class RecordingTest : public ::testing::Test {
 protected:
  VirtualClock clock_;
  sim::SimulatedGpu gpu_{clock_, *sim::FindGpuModel("A100").value()};
  const std::unique_ptr<SignalWatch> signals_ =
      SignalWatch::Start(SignalWatch::Program::kLoad).value();
  std::vector<RecordedGpu> gpus_;
};

TEST_F(RecordingTest, WhatWasRecordedTellsHowTheSensorsBehave) {
  gpus_.push_back({.gpu = &gpu_, .switched_load = std::make_unique<LocalLoad>(gpu_)});

  const auto end = Record(clock_, gpus_, MakeSchedule({0.5s, 10s}), *signals_);

  ASSERT_TRUE(end.ok()) << end.error().message;
  EXPECT_NEAR(Seconds(end.value().time - TimePoint()).count(), 10, 0.01);
  const RecordedGpu& recorded = gpus_.front();
  const auto counter = calibration::FitCounterResponse(recorded.counter.trace, recorded.load);
  ASSERT_TRUE(counter.ok()) << counter.error().message;
  EXPECT_NEAR(counter.value().period.value.count(), 0.1, 1e-4);
  EXPECT_NEAR(counter.value().delay.value.count(), 0, 0.002);
  // An A100 has no such sensor: the recorder asks once and keeps the error.
  ASSERT_TRUE(recorded.average_power.error);
  EXPECT_EQ(recorded.average_power.error->code, ErrorCode::kNotSupported);
  EXPECT_NEAR(gpu_.ExactPower().value(), 50, 10);  // The load was switched off at the end.
}

TEST_F(RecordingTest, ALoadThatFailsEndsTheRecording) {
  gpus_.push_back({.gpu = &gpu_, .switched_load = std::make_unique<LocalLoad>(gpu_, 3)});

  const auto end = Record(clock_, gpus_, MakeSchedule({0.5s, 10s}), *signals_);

  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().message, "the load is gone");
}

TEST_F(RecordingTest, ASignalEndsTheRecording) {
  gpus_.push_back({.gpu = &gpu_, .switched_load = std::make_unique<LocalLoad>(gpu_)});
  ::raise(SIGTERM);

  const auto end = Record(clock_, gpus_, MakeSchedule({0.5s, 10s}), *signals_);

  EXPECT_FALSE(end.ok());
  EXPECT_EQ(signals_->stop_signal(), SIGTERM);
}

TEST(LoadScheduleTest, WithAMeterHalfOfTheTimeGoesToPlateaus) {
  const auto fast = MakeSchedule({.period = 0.5s, .duration = 30s});
  const auto both = MakeSchedule({.period = 0.5s, .duration = 30s, .for_meter = true});

  EXPECT_NEAR(std::accumulate(both.begin(), both.end(), Seconds(0)).count(), 30, 1e-9);
  EXPECT_LT(both.size(), fast.size());
  EXPECT_EQ(std::count(both.begin(), both.end(), Seconds(2.5s)), 6);
}

}  // namespace recording_test
}  // namespace zeus::cli
