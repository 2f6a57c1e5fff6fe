#include "zeus/daemon/coarse_cpu.h"

#include <gtest/gtest.h>

namespace zeus::daemon::coarse_cpu_test {
namespace {

using namespace zeus::literals;
using namespace std::chrono_literals;

EnergyReading ReadingOf(int joules) {
  EnergyReading reading;
  reading.total = Joules(joules);
  return reading;
}

// Counts a joule for each reading, and says how often it was read.
class CountingMeter : public EnergyMeter {
 public:
  const std::string& name() const override { return name_; }
  Result<EnergyReading> Energy() override { return ReadingOf(++readings_); }
  Result<Watts> Power() override { return 7_W; }

  std::string name_ = "dram:0";
  int readings_ = 0;
};

class CountingCpu final : public CpuPackage {
 public:
  explicit CountingCpu(bool with_dram) : with_dram_(with_dram) {}
  const std::string& name() const override { return name_; }
  Result<EnergyReading> Energy() override {
    if (fails_) return Error{ErrorCode::kUnavailable, "not now"};
    return ReadingOf(++readings_);
  }
  Result<Watts> Power() override { return 9_W; }
  const CpuIdentity& identity() const override { return identity_; }
  EnergyMeter* dram() override { return with_dram_ ? &dram_ : nullptr; }
  Result<PowerLimit> CurrentPowerLimit() override {
    PowerLimit limit;
    limit.requested = limit_;
    return limit;
  }
  Result<PowerLimit> SetPowerLimitWithoutJournal(Watts limit) override {
    limit_ = limit;
    return CurrentPowerLimit();
  }

  const bool with_dram_;
  std::string name_ = "cpu:0";
  CpuIdentity identity_{3, "", ""};
  CountingMeter dram_{};
  Watts limit_{100};
  int readings_ = 0;
  bool fails_ = false;
};

class CoarseCpuTest : public ::testing::Test {
 protected:
  explicit CoarseCpuTest(bool with_dram = true) {
    auto counting = std::make_unique<CountingCpu>(with_dram);
    inner_ = counting.get();
    cpu_ = MakeCoarse(std::move(counting), clock_, [this] { return period_; });
  }
  double Read() { return cpu_->TotalEnergy().value().value(); }

  VirtualClock clock_;
  Seconds period_ = 1s;
  CountingCpu* inner_ = nullptr;
  std::unique_ptr<CpuPackage> cpu_;
};

TEST_F(CoarseCpuTest, EnergyIsReadOnceInAPeriodAtMost) {
  EXPECT_EQ(Read(), 1);
  clock_.Advance(999ms);
  EXPECT_EQ(Read(), 1);
  clock_.Advance(1ms);
  EXPECT_EQ(Read(), 2);
  period_ = 10ms;
  clock_.Advance(10ms);
  EXPECT_EQ(Read(), 3);
}

TEST_F(CoarseCpuTest, MemoryHasItsOwnReadings) {
  EXPECT_EQ(cpu_->dram()->TotalEnergy().value(), 1_J);
  EXPECT_EQ(Read(), 1);
  clock_.Advance(500ms);
  EXPECT_EQ(cpu_->dram()->TotalEnergy().value(), 1_J);
  EXPECT_EQ(cpu_->dram()->name(), "dram:0");
  EXPECT_EQ(cpu_->dram()->Power().value(), 7_W);
}

TEST_F(CoarseCpuTest, AFailureIsToldAndTriedAgain) {
  inner_->fails_ = true;
  EXPECT_FALSE(cpu_->Energy().ok());
  inner_->fails_ = false;
  EXPECT_EQ(Read(), 1);
}

TEST_F(CoarseCpuTest, EverythingElseIsThatOfThePackage) {
  EXPECT_EQ(cpu_->name(), "cpu:0");
  EXPECT_EQ(cpu_->identity().package, 3);
  EXPECT_EQ(cpu_->Power().value(), 9_W);
  EXPECT_EQ(cpu_->SetPowerLimitWithoutJournal(80_W).value().requested, 80_W);
  EXPECT_EQ(cpu_->CurrentPowerLimit().value().requested, 80_W);
  EXPECT_EQ(cpu_->lender(), nullptr);
}

class CpuWithoutMemoryTest : public CoarseCpuTest {
 protected:
  CpuWithoutMemoryTest() : CoarseCpuTest(false) {}
};

TEST_F(CpuWithoutMemoryTest, HasNone) { EXPECT_EQ(cpu_->dram(), nullptr); }

}  // namespace
}  // namespace zeus::daemon::coarse_cpu_test
