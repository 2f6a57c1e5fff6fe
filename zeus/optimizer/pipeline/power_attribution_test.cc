#include "zeus/optimizer/pipeline/power_attribution.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "zeus/base/random.h"

namespace zeus::pipeline {
namespace power_attribution_test {

using Exposure = std::array<Seconds, 3>;
constexpr std::array<double, 3> kPowers = {300, 250, 85};

Joules ComputeEnergy(const Exposure& exposure) {
  Joules energy{};
  for (std::size_t i = 0; i < 3; ++i) energy += Watts(kPowers[i]) * exposure[i];
  return energy;
}

TEST(PowerAttributionTest, MixturesOfStatesTellThePowerOfEach) {
  PowerAttribution attribution(3);
  Random random(1);
  for (int i = 0; i < 40; ++i) {
    const double first = random.Uniform(0, 0.1);
    const double second = random.Uniform(0, 0.1 - first);
    const Exposure exposure = {Seconds(first), Seconds(second), Seconds(0.1 - first - second)};
    attribution.Add(exposure, ComputeEnergy(exposure));
  }
  const auto estimates = attribution.Solve();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(estimates[i].power.value(), kPowers[i], 1e-4);
    EXPECT_LT(estimates[i].sigma.value(), 0.01 * kPowers[i]);
  }
}

TEST(PowerAttributionTest, NoiseShowsInTheSigmas) {
  // Over many trials the errors are as large as the sigmas say.
  Random random(2);
  double squares = 0;
  int count = 0;
  for (int trial = 0; trial < 200; ++trial) {
    PowerAttribution attribution(3);
    for (int i = 0; i < 60; ++i) {
      const double first = random.Uniform(0, 0.1);
      const double second = random.Uniform(0, 0.1 - first);
      const Exposure exposure = {Seconds(first), Seconds(second), Seconds(0.1 - first - second)};
      attribution.Add(exposure, ComputeEnergy(exposure) + Joules(random.Uniform(-2, 2)));
    }
    const auto estimates = attribution.Solve();
    for (std::size_t i = 0; i < 3; ++i) {
      squares +=
          std::pow((estimates[i].power.value() - kPowers[i]) / estimates[i].sigma.value(), 2);
      ++count;
    }
  }
  EXPECT_NEAR(std::sqrt(squares / count), 1.0, 0.1);
}

TEST(PowerAttributionTest, StatesThatComeOnlyTogetherCannotBeToldApart) {
  PowerAttribution attribution(3);
  for (int i = 1; i < 40; ++i) {
    const Exposure exposure = {Seconds(0.001 * i), Seconds(0.002 * i), Seconds(0.1)};
    attribution.Add(exposure, ComputeEnergy(exposure));
  }
  const auto estimates = attribution.Solve();
  EXPECT_GT(estimates[0].sigma.value(), 100);
  EXPECT_GT(estimates[1].sigma.value(), 100);
  EXPECT_NEAR(estimates[2].power.value(), 85, 1);
}

TEST(PowerAttributionTest, AStateThatNeverWasIsNotKnown) {
  PowerAttribution attribution(3);
  for (int i = 1; i < 10; ++i) {
    const Exposure exposure = {Seconds(0.01 * i), Seconds(0.1 - 0.01 * i), Seconds(0)};
    attribution.Add(exposure, ComputeEnergy(exposure));
  }
  const auto estimates = attribution.Solve();
  EXPECT_NEAR(estimates[0].power.value(), 300, 0.01);
  EXPECT_TRUE(std::isinf(estimates[2].sigma.value()));
}

TEST(PowerAttributionTest, TooFewMeasurementsProveNothing) {
  PowerAttribution attribution(3);
  const Exposure exposure = {Seconds(0.05), Seconds(0.03), Seconds(0.02)};
  attribution.Add(exposure, ComputeEnergy(exposure));
  for (const auto& estimate : attribution.Solve()) EXPECT_TRUE(std::isinf(estimate.sigma.value()));
}

}  // namespace power_attribution_test
}  // namespace zeus::pipeline
