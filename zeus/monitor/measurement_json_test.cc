#include "zeus/monitor/measurement_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "zeus/base/json.h"

namespace zeus {
namespace measurement_json_test {

using namespace literals;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

Measurement AMeasurement() {
  MeasurementFlags flags;
  flags.Set(MeasurementFlag::kShortWindow);
  return {.window = "epoch",
          .started = WallTime(1700000000s + 250ms),
          .time = 10s,
          .stage = Measurement::Stage::kRefined,
          .devices = {{.device = "gpu:0",
                       .energy = EnergyEstimate{.energy = 100_J,
                                                .sigma = 2_J,
                                                .shared_sigma = 1_J,
                                                .attributed = 60_J,
                                                .source = EnergySource::kIntegrated,
                                                .coverage = 0.25,
                                                .updates = 12,
                                                .update_period = 100ms,
                                                .flags = flags}},
                      {.device = "gpu:1",
                       .energy = Error{ErrorCode::kUnavailable, "GPU fell off the bus"},
                       .in_total = false}}};
}

TEST(MeasurementJsonTest, IsReadBackAsWritten) {
  const Json json = ToJson(AMeasurement());
  const auto again = MeasurementFromJson(json);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(ToJson(again.value()), json);
  EXPECT_EQ(again.value().started, AMeasurement().started);
  EXPECT_EQ(again.value().devices[0].energy.value().shared_sigma, 1_J);
  EXPECT_EQ(again.value().devices[1].energy.error().message, "GPU fell off the bus");
}

TEST(MeasurementJsonTest, NamesWithoutUnitsAreStillRead) {
  const auto old = MeasurementFromJson(Json::parse(R"({
      "window": "epoch", "start_time": 1700000000.25, "time": 10, "refined": true,
      "total_energy": 100, "total_sigma": 2,
      "devices": [{"device": "gpu:0", "in_total": true, "energy": 100, "sigma": 2,
                   "shared_sigma": 1, "attributed": 60, "source": "integrated",
                   "coverage": 0.25, "updates": 12, "update_period": 0.1,
                   "flags": ["short_window"]},
                  {"device": "gpu:1", "in_total": false, "reason": "GPU fell off the bus"}]})"));
  ASSERT_TRUE(old.ok()) << old.error().message;
  EXPECT_EQ(ToJson(old.value()), ToJson(AMeasurement()));
}

TEST(MeasurementJsonTest, UnknownNumbersAreNull) {
  Measurement measurement = AMeasurement();
  measurement.devices[0].energy.value().sigma = Joules(std::numeric_limits<double>::quiet_NaN());
  const Json json = ToJson(measurement);
  EXPECT_EQ(json["devices"][0]["energy_sigma_joules"], nullptr);
  EXPECT_EQ(json["devices"][1]["energy_joules"], nullptr);
  const auto again = MeasurementFromJson(json);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(std::isnan(again.value().devices[0].energy.value().sigma.value()));
}

TEST(MeasurementJsonTest, ATotalOfNothingIsNotZero) {
  EXPECT_EQ(ToJson(Measurement().Sum())["energy_joules"], nullptr);
}

TEST(MeasurementJsonTest, RefusalsNameTheField) {
  Json json = ToJson(AMeasurement());
  json["devices"][0]["updates"] = "many";
  EXPECT_THAT(MeasurementFromJson(json).error().message, HasSubstr("updates"));
  json = ToJson(AMeasurement());
  json["devices"][0]["source"] = "magic";
  EXPECT_THAT(MeasurementFromJson(json).error().message, HasSubstr("\"magic\""));
  EXPECT_FALSE(MeasurementFromJson(Json::array()).ok());
  EXPECT_FALSE(MeasurementFromJson(Json::object()).ok());
}

}  // namespace measurement_json_test
}  // namespace zeus
