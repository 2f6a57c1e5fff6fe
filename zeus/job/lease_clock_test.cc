#include "zeus/job/lease_clock.h"

#include <gtest/gtest.h>

#include "zeus/job/local_job_service.h"
#include "zeus/job/memory_repository.h"

namespace zeus {
namespace lease_clock_test {

using namespace std::chrono_literals;
using Absence = LeaseClock::Absence;

// A clock whose time of day can be set.
class SetClock final : public Clock {
 public:
  TimePoint Now() const override { return clock_.Now(); }
  WallTime WallNow() const override { return clock_.WallNow() + offset_; }
  void SleepUntil(TimePoint deadline) override { clock_.SleepUntil(deadline); }
  void Advance(Seconds by) { clock_.Advance(by); }
  void SetTimeOfDay(std::chrono::microseconds by) { offset_ += by; }
  BootClock Boot(const std::string& name) const {
    return [this, name] { return BootTime{.boot = name, .since = Now().time_since_epoch()}; };
  }

 private:
  VirtualClock clock_;
  std::chrono::microseconds offset_{0};
};

TEST(LeaseClockTest, SettingTheTimeOfDayDoesNotMoveIt) {
  SetClock clock;
  LeaseClock leases(clock, Absence::kCounted, clock.Boot("a"));
  leases.Begin(std::nullopt);
  const WallTime start = leases.Now();
  EXPECT_EQ(start, clock.WallNow());
  clock.SetTimeOfDay(24h);
  EXPECT_EQ(leases.Now(), start);
  clock.SetTimeOfDay(-48h);
  clock.Advance(10s);
  EXPECT_EQ(leases.Now(), start + 10s);
  EXPECT_EQ(leases.TimeOfDay(leases.Now() + 1min), clock.WallNow() + 1min);
}

TEST(LeaseClockTest, AServerGoesOnWhereTheLastOneWas) {
  SetClock clock;
  LeaseClock first(clock, Absence::kLeftOut, clock.Boot("a"));
  first.Begin(std::nullopt);
  const LeaseTick kept = *first.TickEvery(5s);
  EXPECT_FALSE(first.TickEvery(5s));
  clock.Advance(1h);
  LeaseClock second(clock, Absence::kLeftOut, clock.Boot("a"));
  second.Begin(kept);
  EXPECT_EQ(second.Now(), kept.lease);
  clock.Advance(1s);
  EXPECT_EQ(second.Now(), kept.lease + 1s);
}

TEST(LeaseClockTest, AnAbsenceThatCountsIsMeasuredByTheBootClock) {
  SetClock clock;
  LeaseClock first(clock, Absence::kCounted, clock.Boot("a"));
  first.Begin(std::nullopt);
  const LeaseTick kept = *first.TickEvery(5s);
  clock.Advance(1h);
  clock.SetTimeOfDay(1000h);
  LeaseClock second(clock, Absence::kCounted, clock.Boot("a"));
  second.Begin(kept);
  EXPECT_EQ(second.Now(), kept.lease + 1h);
  // On another machine, or after it was started anew, there is only the time of day.
  LeaseClock elsewhere(clock, Absence::kCounted, clock.Boot("b"));
  elsewhere.Begin(kept);
  EXPECT_EQ(elsewhere.Now(), kept.lease + 1001h);
  clock.SetTimeOfDay(-5000h);
  LeaseClock back(clock, Absence::kCounted, clock.Boot("c"));
  back.Begin(kept);
  EXPECT_EQ(back.Now(), kept.lease) << "it never goes back";
}

TEST(LeaseClockTest, OneFollowsAnotherThatIsAhead) {
  SetClock clock;
  LeaseClock leases(clock, Absence::kLeftOut, clock.Boot("a"));
  leases.Begin(std::nullopt);
  LeaseTick other = *leases.TickEvery(0s);
  other.lease += 10s;
  leases.CatchUp(other);
  EXPECT_EQ(leases.Now(), other.lease);
  other.lease -= 5s;
  leases.CatchUp(other);
  EXPECT_EQ(leases.Now(), other.lease + 5s);
}

class LeasesOfTrialsTest : public ::testing::Test {
 protected:
  std::unique_ptr<LocalJobService> Serve(Absence absence) {
    return std::make_unique<LocalJobService>(
        repository_, clock_, SystemEntropy,
        LocalJobService::LeaseOptions{.absence = absence, .boot_clock = clock_.Boot("a")});
  }
  void StartTrial(LocalJobService& service) {
    ASSERT_TRUE(service
                    .Register({.id = "job",
                               .batch_sizes = {32, 64},
                               .default_batch_size = 64,
                               .max_power = Watts(250),
                               .gpu_model = "V100",
                               .lease = Seconds(60)})
                    .ok());
    ASSERT_TRUE(service.StartTrial({.job_id = "job"}).ok());
  }

  SetClock clock_;
  MemoryRepository repository_;
};

TEST_F(LeasesOfTrialsTest, SettingTheTimeOfDayEndsNoLeaseAndProlongsNone) {
  const auto service = Serve(Absence::kLeftOut);
  StartTrial(*service);
  clock_.SetTimeOfDay(24h);
  EXPECT_EQ(service->ExpireOverdueTrials().value(), 0);
  EXPECT_EQ(service->GetTrial("job", 1).value().lease_until, clock_.WallNow() + 60s);
  clock_.SetTimeOfDay(-48h);
  clock_.Advance(61s);
  EXPECT_EQ(service->ExpireOverdueTrials().value(), 1);
}

TEST_F(LeasesOfTrialsTest, AServerThatWasAwayTakesNobodyForDead) {
  auto service = Serve(Absence::kLeftOut);
  StartTrial(*service);
  EXPECT_EQ(service->ExpireOverdueTrials().value(), 0);
  service.reset();
  clock_.Advance(1h);
  service = Serve(Absence::kLeftOut);
  EXPECT_EQ(service->ExpireOverdueTrials().value(), 0);
  clock_.Advance(61s);
  EXPECT_EQ(service->ExpireOverdueTrials().value(), 1);
}

TEST_F(LeasesOfTrialsTest, AProcessThatComesLaterFindsTheDead) {
  StartTrial(*Serve(Absence::kCounted));
  clock_.Advance(61s);
  EXPECT_EQ(Serve(Absence::kCounted)->ExpireOverdueTrials().value(), 1);
}

}  // namespace lease_clock_test
}  // namespace zeus
