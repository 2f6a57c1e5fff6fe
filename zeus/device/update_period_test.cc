#include "zeus/device/update_period.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace zeus {
namespace update_period_test {

using namespace std::chrono_literals;
using namespace zeus::literals;

// A counter that shows a new value every `period` of the clock.
class SteppingMeter final : public EnergyMeter {
 public:
  SteppingMeter(const Clock& clock, Seconds period) : clock_(clock), period_(period) {}

  const std::string& name() const override { return name_; }
  Result<EnergyReading> Energy() override {
    const double steps = std::floor(clock_.Now().time_since_epoch() / period_);
    return EnergyReading{.total = Joules(steps), .epoch = 0, .taken_at = {}};
  }
  Result<Watts> Power() override { return Error{ErrorCode::kNotSupported, "counter only"}; }

 private:
  const Clock& clock_;
  const Seconds period_;
  const std::string name_ = "test:0";
};

class SilentMeter final : public EnergyMeter {
 public:
  const std::string& name() const override { return name_; }
  Result<EnergyReading> Energy() override { return Error{ErrorCode::kNotSupported, "none"}; }
  Result<Watts> Power() override { return Error{ErrorCode::kNotSupported, "none"}; }

 private:
  const std::string name_ = "test:1";
};

TEST(UpdatePeriodTest, FindsThePeriodsOfSeveralMetersAtOnce) {
  VirtualClock clock;
  SteppingMeter slow(clock, 100ms);
  SteppingMeter fast(clock, 20ms);
  SilentMeter silent;
  const auto periods = MeasureUpdatePeriods(clock, {&slow, &fast, &silent}, 1s);

  ASSERT_TRUE(periods[0] && periods[1]);
  EXPECT_NEAR(periods[0]->period.count(), 0.100, 0.0011);
  EXPECT_NEAR(periods[1]->period.count(), 0.020, 0.0011);
  EXPECT_NEAR(periods[0]->updates, 9, 1);
  EXPECT_LE(periods[0]->error, 1.001ms);
  EXPECT_FALSE(periods[2]);
}

TEST(UpdatePeriodTest, OneChangeIsNotAnInterval) {
  UpdatePeriodEstimator estimator;
  estimator.Add(TimePoint(0s), 1);
  estimator.Add(TimePoint(1s), 2);
  EXPECT_FALSE(estimator.Estimate());
}

TEST(UpdatePeriodTest, TheErrorIsTheLatestPoll) {
  UpdatePeriodEstimator estimator;
  estimator.Add(TimePoint(0s), 0);
  estimator.Add(TimePoint(100ms), 1);
  estimator.Add(TimePoint(190ms), 1);
  estimator.Add(TimePoint(200ms), 2);
  const auto estimate = estimator.Estimate();
  ASSERT_TRUE(estimate);
  EXPECT_EQ(estimate->period, 100ms);
  EXPECT_EQ(estimate->error, 100ms);
}

}  // namespace update_period_test
}  // namespace zeus
