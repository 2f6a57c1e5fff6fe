#include "zeus/monitor/profile_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/device/sim/testing/loads.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus {
namespace profile_store_test {

using namespace std::chrono_literals;
using namespace zeus::literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SensorCalibration Example() {
  return {.gpu = {.uuid = "GPU-1234",
                  .pci_address = "0000:3b:00.0",
                  .model = "NVIDIA A100-SXM4-40GB",
                  .driver = "550.54",
                  .vendor = Vendor::kNvidia},
          .taken_at = WallTime(1'714'564'800'250ms),
          .instant_power = calibration::Response{.period = {101ms, 10us},
                                                 .window = {24ms, 400us},
                                                 .delay = {-1ms, 2ms},
                                                 .step = 170_W,
                                                 .noise = 1.5_W,
                                                 .updates = 200},
          .average_power = std::nullopt,
          .counter = calibration::Response{.period = {99ms, 10us},
                                           .window = {99ms, 400us},
                                           .delay = {7ms, 300us},
                                           .step = 171_W,
                                           .noise = 2_W,
                                           .updates = 201},
          .meter = SensorCalibration::MeterComparison{.fit = {.gain = 0.96,
                                                              .gain_sigma = 0.00096,
                                                              .offset = Watts(-1.25),
                                                              .offset_sigma = 0.25_W,
                                                              .r_squared = 0.9998,
                                                              .plateaus = 12,
                                                              .meter_delay = 250ms},
                                                      .accuracy = 0.005,
                                                      .alone = true}};
}

class ProfileStoreTest : public ::testing::Test {
 protected:
  zeus::testing::TemporaryDirectory directory_;
  const std::filesystem::path own_ = directory_.path() / "own";
  const std::filesystem::path system_ = directory_.path() / "system";
  const ProfileStore store_{own_, system_};
  const SensorCalibration example_ = Example();
};

TEST_F(ProfileStoreTest, WhatWasSavedIsFoundUnchanged) {
  const auto file = store_.Save(example_);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file.value(), own_ / "GPU-1234_550.54.json");

  const auto found = store_.Find(example_.gpu);

  ASSERT_TRUE(found.calibration);
  EXPECT_EQ(found.file, file.value());
  EXPECT_THAT(found.remarks, IsEmpty());
  EXPECT_EQ(ToJson(*found.calibration), ToJson(example_));
  EXPECT_EQ(found.calibration->taken_at, example_.taken_at);
}

TEST_F(ProfileStoreTest, TheMonitorGetsWhatWasMeasuredAndThePriorForTheRest) {
  SensorCalibration calibration = example_;
  calibration.counter = std::nullopt;
  ASSERT_TRUE(store_.Save(calibration).ok());

  const auto profile = store_.Lookup()(example_.gpu);

  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->origin, "calibrated");
  EXPECT_EQ(profile->power_period, 101ms);
  EXPECT_EQ(profile->power_window, 24ms);
  EXPECT_EQ(profile->power_delay, 0s);  // Nothing is shown before it happened.
  EXPECT_EQ(profile->counter_period, 100ms);
  EXPECT_EQ(profile->gain, 0.96);
  EXPECT_NEAR(profile->gain_sigma, std::hypot(0.001, 0.005), 1e-12);
  EXPECT_EQ(profile->offset.value(), -1.25);
}

TEST_F(ProfileStoreTest, WithOtherConsumersOnTheMeterTheOffsetStaysUnknown) {
  SensorCalibration calibration = example_;
  calibration.meter->alone = false;
  const SensorProfile prior = PriorProfile(calibration.gpu);

  const SensorProfile profile = ApplyCalibration(prior, calibration);

  EXPECT_EQ(profile.gain, 0.96);
  EXPECT_EQ(profile.offset, 0_W);
  EXPECT_EQ(profile.offset_sigma, prior.offset_sigma);
}

TEST_F(ProfileStoreTest, WithoutAMeterTheGainStaysThePrior) {
  SensorCalibration calibration = example_;
  calibration.meter = std::nullopt;

  const SensorProfile profile = ApplyCalibration(PriorProfile(calibration.gpu), calibration);

  EXPECT_EQ(profile.gain, 1);
  EXPECT_EQ(profile.gain_sigma, PriorProfile(calibration.gpu).gain_sigma);
  EXPECT_EQ(profile.counter_period, 99ms);
  EXPECT_EQ(profile.counter_delay, 7ms);
}

TEST_F(ProfileStoreTest, NothingStoredIsNothingSaid) {
  const auto found = store_.Find(example_.gpu);

  EXPECT_FALSE(found.calibration);
  EXPECT_THAT(found.remarks, IsEmpty());
  EXPECT_FALSE(store_.Lookup()(example_.gpu));
}

TEST_F(ProfileStoreTest, TheMachinesCalibrationServesWhereTheUserHasNone) {
  ASSERT_TRUE(ProfileStore(system_, "/nonexistent").Save(example_).ok());

  EXPECT_EQ(store_.Find(example_.gpu).file.parent_path(), system_);
  ASSERT_TRUE(store_.Save(example_).ok());
  EXPECT_EQ(store_.Find(example_.gpu).file.parent_path(), own_);
}

TEST_F(ProfileStoreTest, ACalibrationOfAnotherDriverIsNotUsedAndSaidSo) {
  ASSERT_TRUE(store_.Save(example_).ok());
  GpuIdentity updated = example_.gpu;
  updated.driver = "560.1";

  const auto found = store_.Find(updated);

  EXPECT_FALSE(found.calibration);
  ASSERT_EQ(found.remarks.size(), 1U);
  EXPECT_THAT(found.remarks[0], HasSubstr("another driver than \"560.1\""));
  EXPECT_THAT(found.remarks[0], HasSubstr("GPU-1234_550.54.json"));
}

TEST_F(ProfileStoreTest, DamagedFilesAreSaidWithTheirPathAndNotUsed) {
  const std::string good = ToJson(example_).dump();
  const auto with = [&](const char* field, const Json& value) {
    Json json = ToJson(example_);
    json[field] = value;
    return json.dump();
  };
  Json negative = ToJson(example_);
  negative["counter"]["update_period"]["seconds"] = -1;
  const std::pair<std::string, const char*> cases[] = {
      {"", "not valid JSON"},
      {good.substr(0, good.size() / 2), "not valid JSON"},
      {"[]", "not a JSON object"},
      {"{}", "\"kind\" is missing"},
      {with("kind", "recipe"), "not a sensor calibration"},
      {with("version", 2), "has version 2"},
      {with("uuid", "GPU-other"), "is of \"GPU-other\""},
      {with("driver", 550), "wrong type"},
      {with("vendor", "acme"), "names no vendor"},
      {with("meter", {{"gain", 0}}), "meter: field \"gain\" is 0"},
      {with("instant_power", 5), "instant_power"},
      {negative.dump(), "counter: update_period: field \"seconds\" is -1"},
      {std::string(100'000, ' '), "larger than"},
  };
  for (const auto& [text, reason] : cases) {
    SCOPED_TRACE(reason);
    const auto file = directory_.AddFile("own/GPU-1234_550.54.json", text);

    const auto found = store_.Find(example_.gpu);

    EXPECT_FALSE(found.calibration);
    ASSERT_EQ(found.remarks.size(), 1U);
    EXPECT_THAT(found.remarks[0], HasSubstr(file.string() + " is not used: "));
    EXPECT_THAT(found.remarks[0], HasSubstr(reason));
    EXPECT_FALSE(store_.Lookup()(example_.gpu));
  }
}

TEST_F(ProfileStoreTest, TheMachinesCalibrationServesWhereTheUsersIsDamaged) {
  directory_.AddFile("own/GPU-1234_550.54.json", "{");
  ASSERT_TRUE(ProfileStore(system_, "/nonexistent").Save(example_).ok());

  const auto found = store_.Find(example_.gpu);

  EXPECT_TRUE(found.calibration);
  EXPECT_EQ(found.remarks.size(), 1U);
}

TEST_F(ProfileStoreTest, RemovingForgetsTheUsersCalibration) {
  ASSERT_TRUE(store_.Save(example_).ok());

  EXPECT_TRUE(store_.Remove(example_.gpu).ok());

  EXPECT_FALSE(store_.Find(example_.gpu).calibration);
  const auto again = store_.Remove(example_.gpu);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kNotFound);
}

TEST_F(ProfileStoreTest, NamesFromDriversStayInsideTheFolder) {
  SensorCalibration hostile = example_;
  hostile.gpu.uuid = "../../etc/GPU 1";
  hostile.gpu.driver = "5/../5";

  const auto file = store_.Save(hostile);

  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file.value().parent_path(), own_);
  EXPECT_TRUE(store_.Find(hostile.gpu).calibration);
}

TEST_F(ProfileStoreTest, AGpuWithoutAUuidCannotBeStored) {
  SensorCalibration nameless = example_;
  nameless.gpu.uuid = "";

  const auto file = store_.Save(nameless);

  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kNotSupported);
  EXPECT_FALSE(store_.Find(nameless.gpu).calibration);
}

TEST(ProfileStoreFoldersTest, TheEnvironmentDecides) {
  std::map<std::string, std::string> variables;
  const auto folder = [&] {
    const auto store =
        ProfileStore::FromEnvironment([&](const std::string& name) -> std::optional<std::string> {
          const auto found = variables.find(name);
          if (found == variables.end()) return std::nullopt;
          return found->second;
        });
    const auto removed = store.Remove(Example().gpu);
    return removed.ok() ? "" : removed.error().message;
  };

  EXPECT_THAT(folder(), HasSubstr("set ZEUS_PROFILE_DIR or HOME"));
  variables["HOME"] = "/nonexistent/me";
  EXPECT_THAT(folder(), HasSubstr("/nonexistent/me/.config/zeus/sensors/GPU-1234"));
  variables["XDG_CONFIG_HOME"] = "/nonexistent/config";
  EXPECT_THAT(folder(), HasSubstr("/nonexistent/config/zeus/sensors/GPU-1234"));
  variables["ZEUS_PROFILE_DIR"] = "/nonexistent/profiles";
  EXPECT_THAT(folder(), HasSubstr("/nonexistent/profiles/GPU-1234"));
}

// The plain call uses what `zeus calibrate` measured.
TEST_F(ProfileStoreTest, AMonitorUsesTheCalibrationsOfThisUser) {
  VirtualClock clock;
  const auto make_node = [&clock] {
    Node node;
    node.gpus.push_back(std::make_unique<sim::SimulatedGpu>(clock, sim::testing::Model("V100")));
    return node;
  };
  const auto calibrated = [&](NodeMonitorOptions options) {
    options.thread = false;
    options.share = false;
    return NodeMonitor::Open(clock, make_node(), std::move(options)).value()->calibrated(0);
  };
  const char* const before = std::getenv("ZEUS_PROFILE_DIR");
  const std::optional<std::string> kept =
      before ? std::optional<std::string>(before) : std::nullopt;
  ::setenv("ZEUS_PROFILE_DIR", own_.c_str(), 1);
  EXPECT_FALSE(calibrated({}));
  SensorCalibration calibration = example_;
  calibration.gpu = make_node().gpus.front()->identity();
  ASSERT_TRUE(store_.Save(calibration).ok());
  EXPECT_TRUE(calibrated({}));
  EXPECT_FALSE(calibrated({.calibration = IgnoreCalibrations}));
  kept ? ::setenv("ZEUS_PROFILE_DIR", kept->c_str(), 1) : ::unsetenv("ZEUS_PROFILE_DIR");
}

}  // namespace profile_store_test
}  // namespace zeus
