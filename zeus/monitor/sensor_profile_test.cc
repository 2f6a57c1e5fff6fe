#include "zeus/monitor/sensor_profile.h"

#include <gtest/gtest.h>

#include "zeus/device/sim/gpu_model.h"

namespace zeus {
namespace sensor_profile_test {

using namespace std::chrono_literals;

SensorProfile FindPrior(std::string model, Vendor vendor = Vendor::kNvidia) {
  return PriorProfile({.uuid = "GPU-1",
                       .pci_address = "0000:3b:00.0",
                       .model = std::move(model),
                       .driver = "550.54",
                       .vendor = vendor});
}

TEST(SensorProfileTest, PriorsOfSimulatedModelsAreWhatTheirSensorsDo) {
  for (const sim::GpuModel& model : sim::GpuModels()) {
    SCOPED_TRACE(model.id);
    const SensorProfile prior = FindPrior(std::string(model.name));

    EXPECT_EQ(prior.power_period, model.sensors.power_update);
    EXPECT_EQ(prior.power_window, model.sensors.power_window);
    if (model.sensors.counter_update) {
      EXPECT_EQ(prior.counter_period, *model.sensors.counter_update);
    }
    EXPECT_GE(prior.gain_sigma, model.sensors.gain_spread / 1.74);  // Uniform: over √3.
    EXPECT_LE(prior.gain_sigma, 2.1 * model.sensors.gain_spread / 1.73);
    EXPECT_NEAR(prior.offset_sigma.value(), model.sensors.offset_spread.value() / 1.7321, 1e-3);
    EXPECT_EQ(prior.origin, "prior");
  }
}

TEST(SensorProfileTest, WordsOfANameDecideNotItsParts) {
  EXPECT_EQ(FindPrior("NVIDIA A10").power_window, 100ms);
  EXPECT_EQ(FindPrior("NVIDIA A100 80GB PCIe").power_window, 25ms);
  EXPECT_EQ(FindPrior("NVIDIA A100X").power_window, 25ms);
  EXPECT_EQ(FindPrior("NVIDIA RTX A1000").power_window, 100ms);
  EXPECT_EQ(FindPrior("NVIDIA A30").power_window, 25ms);
  EXPECT_EQ(FindPrior("NVIDIA GH200 480GB").power_window, 25ms);
  EXPECT_EQ(FindPrior("NVIDIA GeForce GTX 1080 Ti").power_period, 20ms);
  EXPECT_EQ(FindPrior("NVIDIA GeForce RTX 4090").power_window, 100ms);
  EXPECT_EQ(FindPrior("NVIDIA RTX 6000 Ada Generation").power_window, 100ms);
  EXPECT_EQ(FindPrior("TITAN X (Pascal)").power_period, 20ms);
  EXPECT_EQ(FindPrior("Quadro RTX 8000").power_window, 20ms);
  EXPECT_EQ(FindPrior("NVIDIA T1000 8GB").power_window, 100ms);
  EXPECT_EQ(FindPrior("Quadro RTX 5000").power_window, 100ms);
}

TEST(SensorProfileTest, AnUnknownModelGetsTheLeastObservantSensorAndTheWidestError) {
  const SensorProfile unknown = FindPrior("NVIDIA Z900");

  EXPECT_EQ(unknown.power_period, 100ms);
  EXPECT_EQ(unknown.power_window, 25ms);
  EXPECT_GT(unknown.gain_sigma, FindPrior("NVIDIA A100-SXM4-40GB").gain_sigma);
  EXPECT_EQ(FindPrior("").power_window, 25ms);
  EXPECT_EQ(FindPrior("Tesla M40").power_window, 25ms);
}

TEST(SensorProfileTest, OtherVendorsAreNotLookedUpByNvidiaNames) {
  EXPECT_EQ(FindPrior("V100", Vendor::kAmd).power_period, 100ms);
  EXPECT_EQ(FindPrior("V100", Vendor::kIntel).counter_period, 10ms);
}

TEST(SensorProfileTest, CpusUpdateEveryMillisecond) {
  EXPECT_EQ(PriorCpuProfile().counter_period, 1ms);
  EXPECT_GT(PriorCpuProfile().gain_sigma, 0);
}

TEST(SensorProfileTest, RailsHaveNoBlindTime) {
  EXPECT_EQ(PriorRailProfile().power_window, PriorRailProfile().power_period);
}

}  // namespace sensor_profile_test
}  // namespace zeus
