#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <thread>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/device/cpu_package.h"

namespace zeus::testing {

// What every CpuPackage promises. A Harness owns one package over something that the test moves:
//
//   struct Harness {
//     CpuPackage& package();
//     void Use(Joules energy);        // Makes the package's counter grow. Unused without counter.
//     void UseDram(Joules energy);    // The same for its memory. Unused without memory counter.
//     void Break();                   // From now on the kernel answers every read with an error.
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(Powercap, CpuConformanceTest, PowercapHarness);
//
// A promise about something that the package does not have is checked the other way round: the
// refusal must be kNotSupported with a reason.
template <class Harness>
class CpuConformanceTest : public ::testing::Test {
 protected:
  CpuPackage& package() { return harness_.package(); }

  bool HasCounter() { return package().Energy().ok(); }
  bool HasLimit() { return package().CurrentPowerLimit().ok(); }

  static void ExpectRefusal(const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::kNotSupported) << error.message;
    ASSERT_FALSE(error.message.empty());
    EXPECT_FALSE(std::isupper(static_cast<unsigned char>(error.message.front()))) << error.message;
  }

  Harness harness_;
};
TYPED_TEST_SUITE_P(CpuConformanceTest);

TYPED_TEST_P(CpuConformanceTest, IsNamedAfterItsPackage) {
  const std::string number = std::to_string(this->package().identity().package);
  EXPECT_EQ(this->package().name(), "cpu:" + number);
  EXPECT_FALSE(this->package().identity().source.empty());
  if (EnergyMeter* dram = this->package().dram(); dram != nullptr) {
    EXPECT_EQ(dram->name(), "dram:" + number);
    EXPECT_EQ(this->package().dram(), dram);
  }
}

TYPED_TEST_P(CpuConformanceTest, TellsEnergyOrPowerAndRefusesTheOtherWithAReason) {
  const auto energy = this->package().Energy();
  const auto power = this->package().Power();
  EXPECT_TRUE(energy.ok() || power.ok());
  if (!energy.ok()) this->ExpectRefusal(energy.error());
  if (!power.ok()) this->ExpectRefusal(power.error());
}

TYPED_TEST_P(CpuConformanceTest, EnergyGrowsByWhatIsUsed) {
  if (!this->HasCounter()) return this->ExpectRefusal(this->package().Energy().error());
  const auto before = this->package().Energy().value();
  this->harness_.Use(Joules(1234.5));
  const auto after = this->package().Energy().value();
  EXPECT_NEAR((after.total - before.total).value(), 1234.5, 1e-4);
  EXPECT_EQ(after.epoch, before.epoch);
}

TYPED_TEST_P(CpuConformanceTest, EnergyNeverDecreasesOverManyTurnsOfTheCounter) {
  if (!this->HasCounter()) return this->ExpectRefusal(this->package().Energy().error());
  const auto first = this->package().Energy().value();
  Joules last = first.total;
  constexpr int kSteps = 40;
  constexpr Joules kStep(20'000);  // A 32-bit counter of 61 uJ turns over after 13 of these.
  for (int step = 0; step < kSteps; ++step) {
    this->harness_.Use(kStep);
    const Joules now = this->package().TotalEnergy().value();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_NEAR((last - first.total).value(), (kStep * kSteps).value(), 1e-3);
  EXPECT_EQ(this->package().Energy().value().epoch, first.epoch);
}

TYPED_TEST_P(CpuConformanceTest, MemoryIsCountedApartFromThePackage) {
  EnergyMeter* dram = this->package().dram();
  if (dram == nullptr || !dram->Energy().ok() || !this->HasCounter()) return;
  const Joules package_before = this->package().TotalEnergy().value();
  const Joules dram_before = dram->TotalEnergy().value();
  this->harness_.UseDram(Joules(50));
  EXPECT_EQ(this->package().TotalEnergy().value(), package_before);
  EXPECT_NEAR((dram->TotalEnergy().value() - dram_before).value(), 50.0, 1e-4);
}

TYPED_TEST_P(CpuConformanceTest, AFailedReadIsAnErrorNotAZero) {
  this->harness_.Break();
  const auto energy = this->package().Energy();
  const auto power = this->package().Power();
  ASSERT_FALSE(energy.ok());
  ASSERT_FALSE(power.ok());
  EXPECT_FALSE(energy.error().message.empty());
  EXPECT_FALSE(power.error().message.empty());
}

TYPED_TEST_P(CpuConformanceTest, TheLimitLiesInItsRange) {
  const auto limit = this->package().CurrentPowerLimit();
  if (!limit.ok()) return this->ExpectRefusal(limit.error());
  EXPECT_LE(limit.value().range.min, limit.value().requested);
  EXPECT_LE(limit.value().requested, limit.value().range.max);
  EXPECT_LE(limit.value().default_limit, limit.value().range.max);
  EXPECT_GT(limit.value().range.max, Watts(0));
}

TYPED_TEST_P(CpuConformanceTest, ALimitThatIsSetIsReadBack) {
  if (!this->HasLimit())
    return this->ExpectRefusal(this->package().SetPowerLimit(Watts(50)).error());
  const auto before = this->package().CurrentPowerLimit().value();
  const Watts wanted = before.range.max / 2;
  const auto set = this->package().SetPowerLimit(wanted);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set.value().requested, wanted);
  EXPECT_LE(set.value().enforced, wanted + Watts(1));
  const auto after = this->package().CurrentPowerLimit().value();
  EXPECT_NEAR(after.requested.value(), wanted.value(), 1.0);
  EXPECT_EQ(after.range.max, before.range.max);
  EXPECT_EQ(after.default_limit, before.default_limit);
}

TYPED_TEST_P(CpuConformanceTest, ALimitOutsideTheRangeIsRefusedAndChangesNothing) {
  if (!this->HasLimit()) return;
  const auto before = this->package().CurrentPowerLimit().value();
  for (const Watts wrong : {Watts(-1), before.range.max + Watts(1)}) {
    const auto set = this->package().SetPowerLimit(wrong);
    ASSERT_FALSE(set.ok());
    EXPECT_EQ(set.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(this->package().CurrentPowerLimit().value().requested, before.requested);
}

TYPED_TEST_P(CpuConformanceTest, MayBeReadFromSeveralThreads) {
  if (!this->HasCounter()) return;
  const Joules before = this->package().TotalEnergy().value();
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 4; ++reader) {
    readers.emplace_back([this] {
      Joules last;
      for (int reading = 0; reading < 200; ++reading) {
        const auto energy = this->package().TotalEnergy();
        ASSERT_TRUE(energy.ok());
        ASSERT_GE(energy.value(), last);
        last = energy.value();
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(this->package().TotalEnergy().value(), before);
}

REGISTER_TYPED_TEST_SUITE_P(CpuConformanceTest, IsNamedAfterItsPackage,
                            TellsEnergyOrPowerAndRefusesTheOtherWithAReason,
                            EnergyGrowsByWhatIsUsed, EnergyNeverDecreasesOverManyTurnsOfTheCounter,
                            MemoryIsCountedApartFromThePackage, AFailedReadIsAnErrorNotAZero,
                            TheLimitLiesInItsRange, ALimitThatIsSetIsReadBack,
                            ALimitOutsideTheRangeIsRefusedAndChangesNothing,
                            MayBeReadFromSeveralThreads);

}  // namespace zeus::testing
