#include "zeus/monitor/measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zeus {
namespace measurement_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using ::testing::ElementsAre;

EnergyEstimate Estimate(Joules energy, Joules sigma) {
  return {.energy = energy,
          .sigma = sigma,
          .attributed = energy,
          .source = EnergySource::kCounter,
          .coverage = 1.0,
          .updates = 12,
          .update_period = 100ms,
          .flags = {}};
}

TEST(MeasurementTest, ReadsLikeASentence) {
  EXPECT_EQ(ToText(Estimate(1234.4_J, 31_J)), "1234 ± 31 J (counter, 100 ms, 12 updates)");
}

TEST(MeasurementTest, TheSumNamesWhatItContainsAndWhatIsMissing) {
  Measurement measurement;
  measurement.devices = {{.device = "gpu:0", .energy = Estimate(100_J, 3_J)},
                         {.device = "gpu:1", .energy = Estimate(200_J, 4_J)},
                         {.device = "gpu:2", .energy = Error{ErrorCode::kUnavailable, "lost"}},
                         {.device = "rail:IN", .energy = Estimate(900_J, 9_J), .in_total = false}};
  const Measurement::Total total = measurement.Sum();
  EXPECT_EQ(total.energy, 300_J);
  EXPECT_EQ(total.sigma, 5_J);
  EXPECT_THAT(total.contains, ElementsAre("gpu:0", "gpu:1"));
  EXPECT_THAT(total.missing, ElementsAre("gpu:2"));
}

TEST(MeasurementTest, ADeviceWithoutANumberGivesItsReason) {
  EXPECT_EQ(ToText(DeviceMeasurement{.device = "gpu:0",
                                     .energy = Error{ErrorCode::kUnavailable, "GPU is lost"}}),
            "GPU is lost");
}

TEST(MeasurementTest, FlagsHaveNames) {
  MeasurementFlags flags;
  flags.Set(MeasurementFlag::kThrottled);
  flags.Set(MeasurementFlag::kCounterReset);
  EXPECT_THAT(flags.Names(), ElementsAre("counter_reset", "throttled"));
}

}  // namespace measurement_test
}  // namespace zeus
