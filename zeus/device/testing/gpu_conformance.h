#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "zeus/device/gpu.h"

namespace zeus::testing {

// What every Gpu promises. Instantiate with a factory that is default constructible and stays
// alive as long as its GPU:
//   struct SimulatedGpuFactory {
//     std::unique_ptr<Gpu> Make();
//     void Advance(Seconds by);  // Optional: lets the GPU's time pass.
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(Simulated, GpuConformance, SimulatedGpuFactory);
//
// A GPU need not have every sensor and knob: kNotSupported, or kPermissionDenied for a knob, with
// a reason passes. Tests put back what they change.
template <class Factory>
class GpuConformance : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(gpu_, nullptr); }

  // A knob takes effect after a while: where the test cannot let time pass, it cannot look.
  static constexpr bool kTimePasses = requires(Factory factory) { factory.Advance(Seconds(1)); };

  void Advance(Seconds by) {
    if constexpr (kTimePasses) factory_.Advance(by);
  }

  // Whether the device can do it at all. A refusal must carry a reason.
  template <class T>
  static bool Supports(const Result<T>& result) {
    if (result.ok()) return true;
    EXPECT_FALSE(result.error().message.empty());
    EXPECT_TRUE(result.error().code == ErrorCode::kNotSupported ||
                result.error().code == ErrorCode::kPermissionDenied)
        << result.error().message;
    return false;
  }

  // The batched reading and the single call are two ways to the same sensor.
  template <class T>
  static void ExpectSameSupport(const Result<T>& batched, const Result<T>& single) {
    EXPECT_EQ(Supports(batched), Supports(single));
  }

  Factory factory_;
  std::unique_ptr<Gpu> gpu_ = factory_.Make();
};

TYPED_TEST_SUITE_P(GpuConformance);

TYPED_TEST_P(GpuConformance, KnowsWhoItIs) {
  const GpuIdentity& identity = this->gpu_->identity();
  EXPECT_FALSE(this->gpu_->name().empty());
  EXPECT_FALSE(identity.model.empty());
  EXPECT_FALSE(identity.uuid.empty() && identity.pci_address.empty());
  EXPECT_TRUE(std::ranges::none_of(identity.pci_address, [](char c) {
    return c >= 'A' && c <= 'F';
  })) << identity.pci_address;
}

TYPED_TEST_P(GpuConformance, EnergyNeverDecreases) {
  auto last = this->gpu_->Energy();
  if (!this->Supports(last)) GTEST_SKIP() << last.error().message;
  for (int i = 0; i < 20; ++i) {
    this->Advance(Seconds(0.25));
    const auto next = this->gpu_->Energy();
    ASSERT_TRUE(next.ok()) << next.error().message;
    EXPECT_GE(next.value().total, last.value().total);
    EXPECT_GE(next.value().epoch, last.value().epoch);
    last = next;
  }
}

TYPED_TEST_P(GpuConformance, EveryValueIsThereOrHasAReason) {
  const GpuReading reading = this->gpu_->Read();
  this->Supports(reading.energy);
  this->Supports(reading.instant_power);
  this->Supports(reading.average_power);
  this->Supports(reading.memory_power);
  this->Supports(reading.requested_limit);
  this->Supports(reading.enforced_limit);
  this->Supports(reading.temperature);
  this->Supports(reading.utilization);
  this->Supports(reading.memory);
  this->Supports(reading.graphics_clock);
  this->Supports(reading.memory_clock);
  this->Supports(reading.throttle);
}

TYPED_TEST_P(GpuConformance, SensorsReadPlausibleValues) {
  const GpuReading reading = this->gpu_->Read();
  for (const auto& power : {reading.instant_power, reading.average_power, reading.memory_power}) {
    if (!power.ok()) continue;
    EXPECT_TRUE(power.value() >= Watts(0) && power.value() < Watts(5000)) << power.value().value();
  }
  if (reading.temperature.ok()) {
    EXPECT_GT(reading.temperature.value(), Celsius(-40));
    EXPECT_LT(reading.temperature.value(), Celsius(150));
  }
  if (reading.utilization.ok()) {
    EXPECT_TRUE(reading.utilization.value().compute >= 0 &&
                reading.utilization.value().compute <= 1);
    EXPECT_TRUE(reading.utilization.value().memory >= 0 && reading.utilization.value().memory <= 1);
  }
  if (reading.memory.ok()) {
    EXPECT_GT(reading.memory.value().total_bytes, 0U);
    EXPECT_LE(reading.memory.value().used_bytes, reading.memory.value().total_bytes);
  }
}

TYPED_TEST_P(GpuConformance, OneReadingAgreesWithTheSingleCalls) {
  Gpu& gpu = *this->gpu_;
  const GpuReading reading = gpu.Read();
  const auto energy = gpu.Energy();
  this->ExpectSameSupport(reading.energy, energy);
  if (reading.energy.ok() && energy.ok()) {
    EXPECT_GE(energy.value().total, reading.energy.value().total);
  }
  this->ExpectSameSupport(reading.instant_power, gpu.Power(PowerKind::kInstant));
  this->ExpectSameSupport(reading.average_power, gpu.Power(PowerKind::kOneSecondAverage));
  this->ExpectSameSupport(reading.memory_power, gpu.Power(PowerKind::kMemory));
  this->ExpectSameSupport(reading.temperature, gpu.Temperature());
  this->ExpectSameSupport(reading.utilization, gpu.CurrentUtilization());
  this->ExpectSameSupport(reading.memory, gpu.CurrentMemoryUse());
  this->ExpectSameSupport(reading.graphics_clock, gpu.CurrentClock(ClockDomain::kGraphics));
  this->ExpectSameSupport(reading.memory_clock, gpu.CurrentClock(ClockDomain::kMemory));
  this->ExpectSameSupport(reading.throttle, gpu.CurrentThrottleReasons());
  const auto limit = gpu.CurrentPowerLimit();
  if (this->Supports(limit) && reading.requested_limit.ok()) {
    EXPECT_EQ(reading.requested_limit.value(), limit.value().requested);
  }
}

TYPED_TEST_P(GpuConformance, PowerIsInstantWhereThereIsInstantPower) {
  const auto power = this->gpu_->Power();
  const GpuReading reading = this->gpu_->Read();
  EXPECT_EQ(this->Supports(power), reading.instant_power.ok() || reading.average_power.ok());
}

TYPED_TEST_P(GpuConformance, ThePowerLimitRangeIsSane) {
  const auto limit = this->gpu_->CurrentPowerLimit();
  if (!this->Supports(limit)) GTEST_SKIP() << limit.error().message;
  EXPECT_GT(limit.value().range.max, Watts(0));
  EXPECT_LE(limit.value().range.min, limit.value().range.max);
  EXPECT_GE(limit.value().default_limit, limit.value().range.min);
  EXPECT_LE(limit.value().default_limit, limit.value().range.max);
  EXPECT_LE(limit.value().enforced, limit.value().requested);
}

TYPED_TEST_P(GpuConformance, RemembersThePowerLimit) {
  const auto before = this->gpu_->CurrentPowerLimit();
  if (!this->Supports(before)) GTEST_SKIP() << before.error().message;
  const PowerRange range = before.value().range;
  for (const Watts wanted : {range.min, range.max, (range.min + range.max) / 2}) {
    const auto set = this->gpu_->SetPowerLimit(wanted);
    if (!this->Supports(set)) GTEST_SKIP() << set.error().message;
    EXPECT_NEAR(set.value().requested.value(), wanted.value(), 1e-3);
    const auto after = this->gpu_->CurrentPowerLimit();
    ASSERT_TRUE(after.ok()) << after.error().message;
    EXPECT_EQ(after.value().requested, set.value().requested);
  }
  EXPECT_TRUE(this->gpu_->SetPowerLimit(before.value().requested).ok());
}

TYPED_TEST_P(GpuConformance, RejectsLimitsOutsideTheRange) {
  const auto before = this->gpu_->CurrentPowerLimit();
  if (!this->Supports(before)) GTEST_SKIP() << before.error().message;
  const std::array<Watts, 5> wrong = {before.value().range.max + Watts(1),
                                      before.value().range.min - Watts(1), Watts(-1e9),
                                      Watts(std::numeric_limits<double>::infinity()),
                                      Watts(std::numeric_limits<double>::quiet_NaN())};
  for (const Watts limit : wrong) {
    const auto set = this->gpu_->SetPowerLimit(limit);
    ASSERT_FALSE(set.ok()) << limit.value();
    if (set.error().code == ErrorCode::kNotSupported) GTEST_SKIP() << set.error().message;
    EXPECT_EQ(set.error().code, ErrorCode::kInvalidArgument) << set.error().message;
  }
  EXPECT_EQ(this->gpu_->CurrentPowerLimit().value().requested, before.value().requested);
}

TYPED_TEST_P(GpuConformance, SupportedClocksAscend) {
  for (const ClockDomain domain : {ClockDomain::kGraphics, ClockDomain::kMemory}) {
    const auto clocks = this->gpu_->SupportedClocks(domain);
    if (!this->Supports(clocks)) continue;
    ASSERT_FALSE(clocks.value().empty());
    EXPECT_GT(clocks.value().front(), Hertz(0));
    const auto not_ascending = [](Hertz a, Hertz b) { return !(a < b); };
    EXPECT_EQ(std::ranges::adjacent_find(clocks.value(), not_ascending), clocks.value().end());
  }
}

TYPED_TEST_P(GpuConformance, LocksAndResetsClocks) {
  for (const ClockDomain domain : {ClockDomain::kGraphics, ClockDomain::kMemory}) {
    const auto clocks = this->gpu_->SupportedClocks(domain);
    if (!this->Supports(clocks)) continue;
    const Hertz lowest = clocks.value().front();
    const Status locked = this->gpu_->LockClock(domain, {.min = lowest, .max = lowest});
    if (this->Supports(locked) && TestFixture::kTimePasses) {
      this->Advance(Seconds(1));
      const auto clock = this->gpu_->CurrentClock(domain);
      EXPECT_TRUE(!clock.ok() || clock.value() <= lowest) << ClockDomainName(domain);
    }
    this->Supports(this->gpu_->ResetClock(domain));
  }
}

TYPED_TEST_P(GpuConformance, RejectsClocksThatDoNotExist) {
  for (const ClockDomain domain : {ClockDomain::kGraphics, ClockDomain::kMemory}) {
    const auto clocks = this->gpu_->SupportedClocks(domain);
    if (!this->Supports(clocks)) continue;
    const Hertz beyond = clocks.value().back() * 2.0;
    const std::array<ClockRange, 2> wrong = {
        ClockRange{.min = beyond, .max = beyond},
        ClockRange{.min = clocks.value().back() + Hertz(1), .max = clocks.value().front()}};
    for (const ClockRange& range : wrong) {
      const Status locked = this->gpu_->LockClock(domain, range);
      ASSERT_FALSE(locked.ok());
      EXPECT_TRUE(locked.error().code == ErrorCode::kInvalidArgument ||
                  locked.error().code == ErrorCode::kNotSupported)
          << locked.error().message;
    }
  }
}

TYPED_TEST_P(GpuConformance, RemembersPersistence) {
  const auto before = this->gpu_->CurrentPersistence();
  if (!this->Supports(before)) GTEST_SKIP() << before.error().message;
  const auto other = before.value() == Persistence::kOn ? Persistence::kOff : Persistence::kOn;
  if (!this->Supports(this->gpu_->SetPersistence(other))) GTEST_SKIP() << "cannot be changed";
  EXPECT_EQ(this->gpu_->CurrentPersistence().value(), other);
  EXPECT_TRUE(this->gpu_->SetPersistence(before.value()).ok());
}

// Says little by itself; the thread sanitizer says the rest.
TYPED_TEST_P(GpuConformance, ManyThreadsMayUseIt) {
  Gpu& gpu = *this->gpu_;
  const auto limit = gpu.CurrentPowerLimit();
  constexpr int kRounds = 50;
  const auto read = [&gpu] {
    Joules last(0);
    for (int i = 0; i < kRounds; ++i) {
      const auto energy = i % 2 == 0 ? gpu.Read().energy : gpu.Energy();
      if (!energy.ok()) continue;
      EXPECT_GE(energy.value().total, last);
      last = energy.value().total;
    }
  };
  // Another thread may change the limit between a set and its read-back, so that neither value
  // can be asserted here.
  const auto set = [&gpu, &limit] {
    for (int i = 0; i < kRounds && limit.ok(); ++i)
      (void)gpu.SetPowerLimit(i % 2 == 0 ? limit.value().range.min : limit.value().range.max);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(read);
  threads.emplace_back(set);
  threads.emplace_back(set);
  for (std::thread& thread : threads) thread.join();
  if (limit.ok()) (void)gpu.SetPowerLimit(limit.value().requested);
}

REGISTER_TYPED_TEST_SUITE_P(GpuConformance, KnowsWhoItIs, EnergyNeverDecreases,
                            EveryValueIsThereOrHasAReason, SensorsReadPlausibleValues,
                            OneReadingAgreesWithTheSingleCalls,
                            PowerIsInstantWhereThereIsInstantPower, ThePowerLimitRangeIsSane,
                            RemembersThePowerLimit, RejectsLimitsOutsideTheRange,
                            SupportedClocksAscend, LocksAndResetsClocks,
                            RejectsClocksThatDoNotExist, RemembersPersistence, ManyThreadsMayUseIt);

}  // namespace zeus::testing
