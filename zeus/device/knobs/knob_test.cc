#include "zeus/device/knobs/knob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <limits>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus {
namespace knob_test {

using namespace zeus::literals;
using ::testing::ElementsAre;

KnobChoices Range(Watts lowest, Watts highest) { return {.lowest = lowest, .highest = highest}; }

KnobChoices Clocks(int lowest, int highest, int step) {
  KnobChoices clocks{.lowest = Hertz::FromMega(lowest), .highest = Hertz::FromMega(highest)};
  for (int clock = lowest; clock <= highest; clock += step)
    clocks.steps.emplace_back(Hertz::FromMega(clock));
  return clocks;
}

std::vector<double> Numbers(const std::vector<Setting>& settings) {
  std::vector<double> numbers;
  for (const Setting& setting : settings) numbers.push_back(ToNumber(setting));
  return numbers;
}

TEST(KnobTest, NamesAndNumbersSurviveTheWayToAFileAndBack) {
  for (const KnobKind kind : {KnobKind::kGpuPowerLimit, KnobKind::kGraphicsClock,
                              KnobKind::kCpuPowerLimit, KnobKind::kMemoryClock}) {
    EXPECT_EQ(ParseKnobKind(KnobKindName(kind)).value(), kind);
    EXPECT_EQ(ToNumber(SettingOf(kind, 1380)), 1380);
  }
  EXPECT_FALSE(ParseKnobKind("fan_speed").ok());
  EXPECT_EQ(ToText(Watts(150)), "150 W");
  EXPECT_EQ(ToText(Watts(162.5)), "162.5 W");
  EXPECT_EQ(ToText(1380_MHz), "1380 MHz");
}

TEST(KnobChoicesTest, ARangeIsTriedFromTheTopAndTheLowestAlways) {
  EXPECT_THAT(Numbers(Spread(Range(100_W, 175_W), 25_W).value()), ElementsAre(175, 150, 125, 100));
  EXPECT_THAT(Numbers(Spread(Range(100_W, 180_W), 50_W).value()), ElementsAre(180, 130, 100));
  EXPECT_THAT(Numbers(Spread(Range(100_W, 180_W), 500_W).value()), ElementsAre(180, 100));
  EXPECT_THAT(Numbers(Spread(Range(100_W, 150_W), 0_W).value()), ElementsAre(150, 125, 100));
}

TEST(KnobChoicesTest, ARangeOfOneValueIsOneSetting) {
  EXPECT_THAT(Numbers(Spread(Range(250_W, 250_W), 25_W).value()), ElementsAre(250));
  EXPECT_THAT(Numbers(Spread(Clocks(1380, 1380, 15), Hertz(0)).value()), ElementsAre(1380));
}

TEST(KnobChoicesTest, StepsAreThinnedByDistanceOrByCount) {
  EXPECT_THAT(Numbers(Spread(Clocks(100, 190, 10), 25_MHz).value()),
              ElementsAre(190, 160, 130, 100));
  EXPECT_THAT(Numbers(Spread(Clocks(100, 500, 10), Hertz(0)).value()),
              ElementsAre(500, 350, 200, 100));
}

TEST(KnobChoicesTest, AStrideThatMeansNothingIsRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(Spread(Range(100_W, 200_W), 15_MHz).ok());
  EXPECT_FALSE(Spread(Range(100_W, 200_W), Watts(-25)).ok());
  EXPECT_FALSE(Spread(Range(100_W, 200_W), Watts(nan)).ok());
}

TEST(KnobChoicesTest, DifferentDevicesShareWhatBothCan) {
  const KnobChoices ranges = InBoth(Range(100_W, 250_W), Range(125_W, 400_W)).value();
  EXPECT_EQ(ranges.lowest, Setting(125_W));
  EXPECT_EQ(ranges.highest, Setting(250_W));
  const KnobChoices clocks = InBoth(Clocks(100, 400, 20), Clocks(130, 500, 30)).value();
  EXPECT_THAT(Numbers(clocks.steps), ElementsAre(160, 220, 280, 340, 400));
  EXPECT_EQ(clocks.lowest, Setting(160_MHz));
  EXPECT_EQ(InBoth(Range(100_W, 150_W), Range(200_W, 300_W)).error().code,
            ErrorCode::kNotSupported);
  EXPECT_EQ(InBoth(Clocks(100, 400, 20), Clocks(110, 390, 20)).error().code,
            ErrorCode::kNotSupported);
}

TEST(KnobChoicesTest, NothingAboveTheCeilingIsAChoice) {
  const KnobChoices range{.lowest = 100_W, .highest = 400_W};
  EXPECT_EQ(UpTo(250_W, range).highest, Setting(250_W));
  EXPECT_EQ(UpTo(500_W, range).highest, Setting(400_W));
  EXPECT_EQ(Spread(UpTo(90_W, range), 25_W).value(), std::vector<Setting>{90_W});
  const KnobChoices steps{
      .lowest = 300_MHz, .highest = 900_MHz, .steps = {300_MHz, 500_MHz, 700_MHz, 900_MHz}};
  EXPECT_EQ(UpTo(700_MHz, steps).highest, Setting(700_MHz));
  EXPECT_EQ(UpTo(699_MHz, steps).steps.size(), 2U);
  EXPECT_EQ(UpTo(100_MHz, steps).steps, std::vector<Setting>{300_MHz});
}

using ::testing::HasSubstr;

class KnobPolicyTest : public ::testing::Test {
 protected:
  Result<KnobPolicy> Read(const std::string& text, mode_t mode = 0644) {
    folder_.AddFile("knobs.json", text);
    EXPECT_EQ(::chmod(file_.c_str(), mode), 0);
    return ReadKnobPolicy(file_);
  }

  zeus::testing::TemporaryDirectory folder_;
  const std::filesystem::path file_ = folder_.path() / "knobs.json";
};

TEST_F(KnobPolicyTest, WithoutAFileNothingIsRaised) {
  const auto policy = ReadKnobPolicy(file_);
  ASSERT_TRUE(policy.ok());
  EXPECT_EQ(policy.value().Allowed(Ceiling::kAsFound), Ceiling::kAsFound);
  EXPECT_EQ(policy.value().Allowed(Ceiling::kOfDevice), Ceiling::kOfDevice);
}

TEST_F(KnobPolicyTest, AFileOfRootAllowsIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a file of root";
  const auto policy = Read(R"({"may_raise": true, "caps_are_intended": true})");
  ASSERT_TRUE(policy.ok());
  EXPECT_EQ(policy.value().Allowed(Ceiling::kAsFound), Ceiling::kOfDevice);
  EXPECT_TRUE(policy.value().caps_are_intended);
}

TEST_F(KnobPolicyTest, AFileThatOthersMayWriteAllowsNothing) {
  const auto policy = Read(R"({"may_raise": true})", 0666);
  ASSERT_FALSE(policy.ok());
  EXPECT_EQ(policy.error().code, ErrorCode::kPermissionDenied);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(file_.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(file_.c_str(), 0600), 0);
  EXPECT_EQ(ReadKnobPolicy(file_).error().code, ErrorCode::kPermissionDenied);
}

TEST_F(KnobPolicyTest, NonsenseIsRefusedWithItsName) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a file of root";
  for (const char* text : {"", "[]", R"({"may_raise": 1})", R"({"may_rise": true})"})
    EXPECT_FALSE(Read(text).ok()) << text;
  EXPECT_THAT(Read(R"({"may_rise": true})").error().message, HasSubstr("may_rise"));
}

}  // namespace knob_test
}  // namespace zeus
