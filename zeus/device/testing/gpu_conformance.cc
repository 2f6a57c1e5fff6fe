#include "zeus/device/testing/gpu_conformance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "zeus/device/gpu.h"
#include "zeus/device/testing/name_of_case.h"

namespace zeus::testing {

TEST_P(GpuConformance, KnowsWhoItIs) {
  const GpuIdentity& identity = gpu_->identity();
  EXPECT_FALSE(gpu_->name().empty());
  EXPECT_FALSE(identity.model.empty());
  EXPECT_FALSE(identity.uuid.empty() && identity.pci_address.empty());
  EXPECT_TRUE(std::ranges::none_of(identity.pci_address, [](char c) {
    return c >= 'A' && c <= 'F';
  })) << identity.pci_address;
}

TEST_P(GpuConformance, EnergyNeverDecreases) {
  auto last = gpu_->Energy();
  if (!Supports(last)) GTEST_SKIP() << last.error().message;
  for (int i = 0; i < 20; ++i) {
    Advance(Seconds(0.25));
    const auto next = gpu_->Energy();
    ASSERT_TRUE(next.ok()) << next.error().message;
    EXPECT_GE(next.value().total, last.value().total);
    EXPECT_GE(next.value().epoch, last.value().epoch);
    last = next;
  }
}

TEST_P(GpuConformance, EveryValueIsThereOrHasAReason) {
  const GpuReading reading = gpu_->Read();
  Supports(reading.energy);
  Supports(reading.instant_power);
  Supports(reading.average_power);
  Supports(reading.memory_power);
  Supports(reading.requested_limit);
  Supports(reading.enforced_limit);
  Supports(reading.temperature);
  Supports(reading.utilization);
  Supports(reading.memory);
  Supports(reading.graphics_clock);
  Supports(reading.memory_clock);
  Supports(reading.throttle);
}

TEST_P(GpuConformance, SensorsReadPlausibleValues) {
  const GpuReading reading = gpu_->Read();
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

TEST_P(GpuConformance, OneReadingAgreesWithTheSingleCalls) {
  Gpu& gpu = *gpu_;
  const GpuReading reading = gpu.Read();
  const auto energy = gpu.Energy();
  ExpectSameSupport(reading.energy, energy);
  if (reading.energy.ok() && energy.ok()) {
    EXPECT_GE(energy.value().total, reading.energy.value().total);
  }
  ExpectSameSupport(reading.instant_power, gpu.Power(PowerKind::kInstant));
  ExpectSameSupport(reading.average_power, gpu.Power(PowerKind::kOneSecondAverage));
  ExpectSameSupport(reading.memory_power, gpu.Power(PowerKind::kMemory));
  ExpectSameSupport(reading.temperature, gpu.Temperature());
  ExpectSameSupport(reading.utilization, gpu.CurrentUtilization());
  ExpectSameSupport(reading.memory, gpu.CurrentMemoryUse());
  ExpectSameSupport(reading.graphics_clock, gpu.CurrentClock(ClockDomain::kGraphics));
  ExpectSameSupport(reading.memory_clock, gpu.CurrentClock(ClockDomain::kMemory));
  ExpectSameSupport(reading.throttle, gpu.CurrentThrottleReasons());
  const auto limit = gpu.CurrentPowerLimit();
  if (Supports(limit) && reading.requested_limit.ok()) {
    EXPECT_EQ(reading.requested_limit.value(), limit.value().requested);
  }
}

TEST_P(GpuConformance, PowerIsInstantWhereThereIsInstantPower) {
  const auto power = gpu_->Power();
  const GpuReading reading = gpu_->Read();
  EXPECT_EQ(Supports(power), reading.instant_power.ok() || reading.average_power.ok());
}

TEST_P(GpuConformance, ThePowerLimitRangeIsSane) {
  const auto limit = gpu_->CurrentPowerLimit();
  if (!Supports(limit)) GTEST_SKIP() << limit.error().message;
  EXPECT_GT(limit.value().range.max, Watts(0));
  EXPECT_LE(limit.value().range.min, limit.value().range.max);
  EXPECT_GE(limit.value().default_limit, limit.value().range.min);
  EXPECT_LE(limit.value().default_limit, limit.value().range.max);
  EXPECT_LE(limit.value().enforced, limit.value().requested);
}

TEST_P(GpuConformance, RemembersThePowerLimit) {
  const auto before = gpu_->CurrentPowerLimit();
  if (!Supports(before)) GTEST_SKIP() << before.error().message;
  const PowerRange range = before.value().range;
  for (const Watts wanted : {range.min, range.max, (range.min + range.max) / 2}) {
    const auto set = gpu_->SetPowerLimitWithoutJournal(wanted);
    if (!Supports(set)) GTEST_SKIP() << set.error().message;
    EXPECT_NEAR(set.value().requested.value(), wanted.value(), 1e-3);
    const auto after = gpu_->CurrentPowerLimit();
    ASSERT_TRUE(after.ok()) << after.error().message;
    EXPECT_EQ(after.value().requested, set.value().requested);
  }
  EXPECT_TRUE(gpu_->SetPowerLimitWithoutJournal(before.value().requested).ok());
}

TEST_P(GpuConformance, RejectsLimitsOutsideTheRange) {
  const auto before = gpu_->CurrentPowerLimit();
  if (!Supports(before)) GTEST_SKIP() << before.error().message;
  const std::array<Watts, 5> wrong = {before.value().range.max + Watts(1),
                                      before.value().range.min - Watts(1), Watts(-1e9),
                                      Watts(std::numeric_limits<double>::infinity()),
                                      Watts(std::numeric_limits<double>::quiet_NaN())};
  for (const Watts limit : wrong) {
    const auto set = gpu_->SetPowerLimitWithoutJournal(limit);
    ASSERT_FALSE(set.ok()) << limit.value();
    if (set.error().code == ErrorCode::kNotSupported) GTEST_SKIP() << set.error().message;
    EXPECT_EQ(set.error().code, ErrorCode::kInvalidArgument) << set.error().message;
  }
  EXPECT_EQ(gpu_->CurrentPowerLimit().value().requested, before.value().requested);
}

TEST_P(GpuConformance, SupportedClocksAscend) {
  for (const ClockDomain domain : {ClockDomain::kGraphics, ClockDomain::kMemory}) {
    const auto clocks = gpu_->SupportedClocks(domain);
    if (!Supports(clocks)) continue;
    ASSERT_FALSE(clocks.value().empty());
    EXPECT_GT(clocks.value().front(), Hertz(0));
    const auto not_ascending = [](Hertz a, Hertz b) { return !(a < b); };
    EXPECT_EQ(std::ranges::adjacent_find(clocks.value(), not_ascending), clocks.value().end());
  }
}

TEST_P(GpuConformance, LocksAndResetsClocks) {
  for (const ClockDomain domain : {ClockDomain::kGraphics, ClockDomain::kMemory}) {
    const auto clocks = gpu_->SupportedClocks(domain);
    if (!Supports(clocks)) continue;
    const Hertz lowest = clocks.value().front();
    const Status locked = gpu_->LockClockWithoutJournal(domain, {.min = lowest, .max = lowest});
    if (Supports(locked) && TimePasses()) {
      Advance(Seconds(1));
      const auto clock = gpu_->CurrentClock(domain);
      EXPECT_TRUE(!clock.ok() || clock.value() <= lowest) << ClockDomainName(domain);
    }
    Supports(gpu_->ResetClock(domain));
  }
}

TEST_P(GpuConformance, RejectsClocksThatDoNotExist) {
  for (const ClockDomain domain : {ClockDomain::kGraphics, ClockDomain::kMemory}) {
    const auto clocks = gpu_->SupportedClocks(domain);
    if (!Supports(clocks)) continue;
    const Hertz beyond = clocks.value().back() * 2.0;
    const std::array<ClockRange, 2> wrong = {
        ClockRange{.min = beyond, .max = beyond},
        ClockRange{.min = clocks.value().back() + Hertz(1), .max = clocks.value().front()}};
    for (const ClockRange& range : wrong) {
      const Status locked = gpu_->LockClockWithoutJournal(domain, range);
      ASSERT_FALSE(locked.ok());
      EXPECT_TRUE(locked.error().code == ErrorCode::kInvalidArgument ||
                  locked.error().code == ErrorCode::kNotSupported)
          << locked.error().message;
    }
  }
}

TEST_P(GpuConformance, RemembersPersistence) {
  const auto before = gpu_->CurrentPersistence();
  if (!Supports(before)) GTEST_SKIP() << before.error().message;
  const auto other = before.value() == Persistence::kOn ? Persistence::kOff : Persistence::kOn;
  if (!Supports(gpu_->SetPersistence(other))) GTEST_SKIP() << "cannot be changed";
  EXPECT_EQ(gpu_->CurrentPersistence().value(), other);
  EXPECT_TRUE(gpu_->SetPersistence(before.value()).ok());
}

// Says little by itself; the thread sanitizer says the rest.
TEST_P(GpuConformance, ManyThreadsMayUseIt) {
  Gpu& gpu = *gpu_;
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
      (void)gpu.SetPowerLimitWithoutJournal(i % 2 == 0 ? limit.value().range.min
                                                       : limit.value().range.max);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(read);
  threads.emplace_back(set);
  threads.emplace_back(set);
  for (std::thread& thread : threads) thread.join();
  if (limit.ok()) (void)gpu.SetPowerLimitWithoutJournal(limit.value().requested);
}

}  // namespace zeus::testing
