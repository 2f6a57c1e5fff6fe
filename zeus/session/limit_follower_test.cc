#include "zeus/session/limit_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus {
namespace limit_follower_test {

using std::chrono::hours;
using ::testing::HasSubstr;

class LimitFollowerTest : public ::testing::Test {
 protected:
  // Four hours of 500 g/kWh, then four of 100, again and again for two days.
  CarbonAccounting Open() {
    std::string csv = "time,grams_per_kwh\n";
    for (int i = 0; i < 12; ++i)
      csv += std::to_string(1681689600 + i * 4 * 3600) + (i % 2 == 0 ? ",500\n" : ",100\n");
    directory_.AddFile("grid.csv", csv);
    return CarbonAccounting::Open(clock_, {.carbon = (directory_.path() / "grid.csv").string()})
        .value();
  }

  static Profile Curve() {
    Profile profile{.max_power = Watts(300)};
    for (const auto& [limit, rate, power] :
         {std::tuple(300.0, 1.0, 275.0), std::tuple(250.0, 0.98, 245.0),
          std::tuple(200.0, 0.92, 198.0), std::tuple(150.0, 0.79, 149.0)})
      profile.points.push_back({.setting = Watts(limit),
                                .steps = 10,
                                .time_per_step = Seconds(1 / rate),
                                .energy_per_step = Watts(power) * Seconds(1 / rate)});
    return profile;
  }
  static constexpr std::size_t kBest = 2;

  zeus::testing::TemporaryDirectory directory_;
  VirtualClock clock_;  // Begins on 2023-04-17 at midnight, 1681689600.
};

TEST_F(LimitFollowerTest, TheLimitIsLowWhilePowerIsDirtyAndTheReportIsOfWhatCame) {
  const CarbonAccounting grid = Open();
  LimitFollower follower({clock_, grid}, {.duration = hours(16)}, std::nullopt);
  Joules energy{};
  double work = 0;
  Watts dirty{};
  Watts clean{};
  for (int hour = 0; hour < 16; ++hour) {
    const auto limit = follower.LimitNow(Curve(), kBest, 0.5);
    ASSERT_TRUE(limit);
    follower.Note(energy, *limit);
    (hour % 8 < 4 ? dirty : clean) = *limit;
    for (const ProfilePoint& point : Curve().points) {
      if (point.setting != Setting(*limit)) continue;
      energy += 1.1 * (point.average_power() * hours(1));  // The profile is 10 % too low.
      work += 3600 / point.time_per_step.count();
    }
    clock_.Advance(hours(1));
  }
  follower.Note(energy, clean);
  EXPECT_LT(dirty, clean);
  const auto report = follower.Judge(grid);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->constant_limit, Watts(200));
  EXPECT_NEAR(report->constant_time.count(), work / 0.92, 1);
  EXPECT_EQ(report->time, Seconds(hours(16)));
  EXPECT_GE(report->changes, 3);
  EXPECT_LT(report->actual.value, report->constant.value);
  EXPECT_THAT(ToSentence(*report), HasSubstr("instead of"));
  EXPECT_THAT(ToSentence(*report), HasSubstr(" at 200 W, -"));
}

TEST_F(LimitFollowerTest, WithoutAForecastTheBestConstantLimitHolds) {
  const CarbonAccounting grid = Open();
  LimitFollower follower({clock_, grid}, {}, std::nullopt);
  clock_.Advance(hours(24 * 40));
  EXPECT_EQ(follower.LimitNow(Curve(), kBest, 0.5), Watts(200));
}

TEST_F(LimitFollowerTest, AProfileWithOnePointLeavesNoChoice) {
  const CarbonAccounting grid = Open();
  LimitFollower follower({clock_, grid}, {}, std::nullopt);
  Profile profile = Curve();
  profile.points.resize(1);
  EXPECT_EQ(follower.LimitNow(profile, 0, 0.5), std::nullopt);
  EXPECT_FALSE(follower.Judge(grid));
}

TEST_F(LimitFollowerTest, ADeadlineMakesItFast) {
  const CarbonAccounting grid = Open();
  const WallTime soon = clock_.WallNow() + hours(9);
  LimitFollower follower({clock_, grid}, {.finish_by = soon, .duration = hours(10)}, std::nullopt);
  EXPECT_EQ(follower.LimitNow(Curve(), kBest, 1), Watts(300));
}

}  // namespace limit_follower_test
}  // namespace zeus
