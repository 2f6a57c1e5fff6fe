#include "zeus/device/testing/cpu_conformance.h"

#include <gtest/gtest.h>

#include <cctype>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/device/cpu_package.h"
#include "zeus/device/testing/name_of_case.h"

namespace zeus::testing {

TEST_P(CpuConformance, IsNamedAfterItsPackage) {
  const std::string number = std::to_string(package().identity().package);
  EXPECT_EQ(package().name(), "cpu:" + number);
  EXPECT_FALSE(package().identity().source.empty());
  if (EnergyMeter* dram = package().dram(); dram != nullptr) {
    EXPECT_EQ(dram->name(), "dram:" + number);
    EXPECT_EQ(package().dram(), dram);
  }
}

TEST_P(CpuConformance, TellsEnergyOrPowerAndRefusesTheOtherWithAReason) {
  const auto energy = package().Energy();
  const auto power = package().Power();
  EXPECT_TRUE(energy.ok() || power.ok());
  if (!energy.ok()) ExpectRefusal(energy.error());
  if (!power.ok()) ExpectRefusal(power.error());
}

TEST_P(CpuConformance, EnergyGrowsByWhatIsUsed) {
  if (!HasCounter()) return ExpectRefusal(package().Energy().error());
  const auto before = package().Energy().value();
  harness_->Use(Joules(1234.5));
  const auto after = package().Energy().value();
  EXPECT_NEAR((after.total - before.total).value(), 1234.5, 1e-4);
  EXPECT_EQ(after.epoch, before.epoch);
}

TEST_P(CpuConformance, EnergyNeverDecreasesOverManyTurnsOfTheCounter) {
  if (!HasCounter()) return ExpectRefusal(package().Energy().error());
  const auto first = package().Energy().value();
  Joules last = first.total;
  constexpr int kSteps = 40;
  constexpr Joules kStep(20'000);  // A 32-bit counter of 61 uJ turns over after 13 of these.
  for (int step = 0; step < kSteps; ++step) {
    harness_->Use(kStep);
    const Joules now = package().TotalEnergy().value();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_NEAR((last - first.total).value(), (kStep * kSteps).value(), 1e-3);
  EXPECT_EQ(package().Energy().value().epoch, first.epoch);
}

TEST_P(CpuConformance, MemoryIsCountedApartFromThePackage) {
  EnergyMeter* dram = package().dram();
  if (dram == nullptr || !dram->Energy().ok() || !HasCounter()) return;
  const Joules package_before = package().TotalEnergy().value();
  const Joules dram_before = dram->TotalEnergy().value();
  harness_->UseDram(Joules(50));
  EXPECT_EQ(package().TotalEnergy().value(), package_before);
  EXPECT_NEAR((dram->TotalEnergy().value() - dram_before).value(), 50.0, 1e-4);
}

TEST_P(CpuConformance, AFailedReadIsAnErrorNotAZero) {
  harness_->Break();
  const auto energy = package().Energy();
  const auto power = package().Power();
  ASSERT_FALSE(energy.ok());
  ASSERT_FALSE(power.ok());
  EXPECT_FALSE(energy.error().message.empty());
  EXPECT_FALSE(power.error().message.empty());
}

TEST_P(CpuConformance, TheLimitLiesInItsRange) {
  const auto limit = package().CurrentPowerLimit();
  if (!limit.ok()) return ExpectRefusal(limit.error());
  EXPECT_LE(limit.value().range.min, limit.value().requested);
  EXPECT_LE(limit.value().requested, limit.value().range.max);
  EXPECT_LE(limit.value().default_limit, limit.value().range.max);
  EXPECT_GT(limit.value().range.max, Watts(0));
}

TEST_P(CpuConformance, ALimitThatIsSetIsReadBack) {
  if (!HasLimit()) return ExpectRefusal(package().SetPowerLimitWithoutJournal(Watts(50)).error());
  const auto before = package().CurrentPowerLimit().value();
  const Watts wanted = before.range.max / 2;
  const auto set = package().SetPowerLimitWithoutJournal(wanted);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set.value().requested, wanted);
  EXPECT_LE(set.value().enforced, wanted + Watts(1));
  const auto after = package().CurrentPowerLimit().value();
  EXPECT_NEAR(after.requested.value(), wanted.value(), 1.0);
  EXPECT_EQ(after.range.max, before.range.max);
  EXPECT_EQ(after.default_limit, before.default_limit);
}

TEST_P(CpuConformance, ALimitOutsideTheRangeIsRefusedAndChangesNothing) {
  if (!HasLimit()) return;
  const auto before = package().CurrentPowerLimit().value();
  for (const Watts wrong : {Watts(-1), before.range.max + Watts(1)}) {
    const auto set = package().SetPowerLimitWithoutJournal(wrong);
    ASSERT_FALSE(set.ok());
    EXPECT_EQ(set.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(package().CurrentPowerLimit().value().requested, before.requested);
}

TEST_P(CpuConformance, MayBeReadFromSeveralThreads) {
  if (!HasCounter()) return;
  const Joules before = package().TotalEnergy().value();
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 4; ++reader) {
    readers.emplace_back([this] {
      Joules last;
      for (int reading = 0; reading < 200; ++reading) {
        const auto energy = package().TotalEnergy();
        ASSERT_TRUE(energy.ok());
        ASSERT_GE(energy.value(), last);
        last = energy.value();
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(package().TotalEnergy().value(), before);
}

}  // namespace zeus::testing
