#include "zeus/optimizer/power_limit/selector.h"

#include <gmock/gmock.h>

#include <limits>
#include <optional>
#include <string>

#include "zeus/optimizer/power_limit/scheduler_wishes.h"

namespace zeus {
namespace selector_test {

using namespace zeus::literals;
using ::testing::HasSubstr;

ProfilePoint Point(Watts limit, double seconds, double joules, double relative_sigma = 0) {
  return {.setting = limit,
          .steps = 40,
          .time_per_step = Seconds(seconds),
          .time_sigma = Seconds(seconds * relative_sigma),
          .energy_per_step = Joules(joules),
          .energy_sigma = Joules(joules * relative_sigma)};
}

Profile Example(double relative_sigma = 0) {
  Profile profile;
  profile.max_power = 300_W;
  profile.points = {
      Point(300_W, 1.00, 280, relative_sigma), Point(250_W, 1.01, 245, relative_sigma),
      Point(200_W, 1.10, 215, relative_sigma), Point(150_W, 1.40, 214, relative_sigma),
      Point(100_W, 2.50, 245, relative_sigma)};
  return profile;
}

std::size_t Chosen(const Selector& selector, const Profile& profile) {
  const auto chosen = selector.select(profile);
  EXPECT_TRUE(chosen.ok()) << chosen.error().message;
  return chosen.value();
}

TEST(SelectorTest, EveryObjectiveHasItsOwnOptimumInOneProfile) {
  const Profile profile = Example();
  EXPECT_EQ(Chosen(Time(), profile), 0u);
  EXPECT_EQ(Chosen(Energy(), profile), 3u);
  EXPECT_EQ(Chosen(ZeusCost(0), profile), 0u);
  EXPECT_EQ(Chosen(ZeusCost(1), profile), 3u);
  EXPECT_EQ(Chosen(ZeusCost(0.5), profile), 2u);  // 0.5 * 215 + 0.5 * 300 * 1.10 = 272.5
  EXPECT_EQ(Chosen(MaxSlowdownConstraint(1.0), profile), 0u);
  EXPECT_EQ(Chosen(MaxSlowdownConstraint(1.1), profile), 2u);
  EXPECT_EQ(Chosen(MaxSlowdownConstraint(3), profile), 4u);
}

TEST(SelectorTest, ASettingIsBetterOnlyIfTheMeasurementsSaySo) {
  // 214 J and 215 J cannot be told apart: the faster of the two is taken.
  EXPECT_EQ(Chosen(Energy(), Example(0.01)), 2u);
  EXPECT_EQ(Chosen(Energy(), Example(0.001)), 3u);
  // No two settings can be told apart, so the job keeps its speed.
  EXPECT_EQ(Chosen(Energy(), Example(0.5)), 0u);
  EXPECT_EQ(Chosen(ZeusCost(0.5), Example(0.5)), 0u);
  // A setting that may exceed the bound within its uncertainty is not chosen.
  EXPECT_EQ(Chosen(MaxSlowdownConstraint(1.1), Example(0.01)), 1u);
}

TEST(SelectorTest, WithinASlowdownAnObjectiveChoosesWhatItMay) {
  const Profile profile = Example();
  EXPECT_EQ(Chosen(WithinSlowdown(Energy(), 3), profile), 3u);  // The bound would allow more.
  EXPECT_EQ(Chosen(WithinSlowdown(Energy(), 1.2), profile), 2u);
  EXPECT_EQ(Chosen(WithinSlowdown(ZeusCost(0.5), 1.05), profile), 1u);
  EXPECT_EQ(Chosen(WithinSlowdown(Time(), 1.2), profile), 0u);
  EXPECT_FALSE(WithinSlowdown(Energy(), 0.9).select(profile).ok());
}

TEST(SelectorTest, WishesOfASchedulerAreReadFromTheEnvironment) {
  const auto read = [](const char* mode, const char* slowdown) {
    return ReadSchedulerWishes([=](const std::string& name) {
      return std::optional<std::string>(name == "ZEUS_MODE" ? mode : slowdown);
    });
  };
  EXPECT_TRUE(read("optimize", "").value().optimize);
  EXPECT_FALSE(read("measure", "").value().optimize);
  EXPECT_EQ(read("optimize", "").value().max_slowdown, std::nullopt);
  EXPECT_EQ(read("", "1.050000").value().max_slowdown, 1.05);
  for (const char* wrong : {"0.9", "5%", "nan", "1e9"})
    EXPECT_THAT(read("", wrong).error().message, HasSubstr("ZEUS_MAX_SLOWDOWN is")) << wrong;
  EXPECT_EQ(Chosen(Within(read("", "1.05").value(), Energy()), Example()), 1u);
  EXPECT_EQ(Chosen(Within(read("", "").value(), Energy()), Example()), 3u);
}

TEST(SelectorTest, AFasterReadingOfALowerLimitIsNoise) {
  Profile profile = Example();
  profile.points[1] = Point(250_W, 0.999, 245, 0.002);
  profile.points[0] = Point(300_W, 1.000, 280, 0.002);
  EXPECT_EQ(Chosen(Time(), profile), 0u);
}

TEST(SelectorTest, TheCostOfAStepWeighsEnergyAgainstTime) {
  const ProfilePoint point = Point(200_W, 2, 100, 0.01);
  EXPECT_EQ(StepCost(point, 300_W, 1).cost, 100_J);
  EXPECT_EQ(StepCost(point, 300_W, 0).cost, 600_J);
  EXPECT_EQ(StepCost(point, 300_W, 0.5).cost, 350_J);
  EXPECT_NEAR(StepCost(point, 300_W, 0.5).sigma.value(), std::hypot(0.5, 3), 1e-12);
}

TEST(SelectorTest, AnObjectiveThatMeansNothingSaysSo) {
  const Profile profile = Example();
  EXPECT_THAT(ZeusCost(1.2).select(profile).error().message, HasSubstr("between 0 and 1, not 1.2"));
  EXPECT_FALSE(ZeusCost(std::numeric_limits<double>::quiet_NaN()).select(profile).ok());
  EXPECT_THAT(MaxSlowdownConstraint(0.9).select(profile).error().message,
              HasSubstr("1 or more, not 0.9"));
  for (const Selector& selector : {Time(), Energy(), ZeusCost(0.5), MaxSlowdownConstraint(1.5)})
    EXPECT_THAT(selector.select(Profile()).error().message, HasSubstr("no setting"));
}

}  // namespace selector_test
}  // namespace zeus
