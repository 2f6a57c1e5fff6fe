#include "zeus/optimizer/clock/service_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zeus {
namespace service_targets_test {

using ::testing::HasSubstr;

TEST(ServiceTargetsTest, TimesAndPercentilesAreRead) {
  const auto targets = ParseServiceTargets("ttft=1.5s, tpot=50ms,percentile=95");
  ASSERT_TRUE(targets.ok()) << targets.error().message;
  EXPECT_EQ(targets.value(), (ServiceTargets{.ttft = Seconds(1.5),
                                             .tpot = Seconds(0.05),
                                             .ttft_percentile = 0.95,
                                             .tpot_percentile = 0.95}));
}

TEST(ServiceTargetsTest, OneTargetIsEnoughAndNinetyPerCentTheDefault) {
  const auto targets = ParseServiceTargets("tpot=900us");
  ASSERT_TRUE(targets.ok()) << targets.error().message;
  EXPECT_FALSE(targets.value().ttft);
  EXPECT_NEAR(targets.value().tpot->count(), 900e-6, 1e-12);
  EXPECT_EQ(targets.value().tpot_percentile, 0.9);
}

TEST(ServiceTargetsTest, APercentileCanBelongToOneTarget) {
  const auto targets = ParseServiceTargets("ttft=1s,tpot=50ms,ttft-percentile=99");
  ASSERT_TRUE(targets.ok()) << targets.error().message;
  EXPECT_EQ(targets.value().ttft_percentile, 0.99);
  EXPECT_EQ(targets.value().tpot_percentile, 0.9);
}

TEST(ServiceTargetsTest, MistakesAreNamed) {
  const auto message = [](std::string_view text) {
    const auto targets = ParseServiceTargets(text);
    return targets.ok() ? "accepted" : targets.error().message;
  };
  EXPECT_THAT(message(""), HasSubstr("has no value"));
  EXPECT_THAT(message("ttft"), HasSubstr("has no value"));
  EXPECT_THAT(message("ttft=1"), HasSubstr("unit s, ms or us"));
  EXPECT_THAT(message("ttft=-1s"), HasSubstr("above 0"));
  EXPECT_THAT(message("ttft=infs"), HasSubstr("above 0"));
  EXPECT_THAT(message("tpot=nanms"), HasSubstr("above 0"));
  EXPECT_THAT(message("ttft=1s,ttft=2s"), HasSubstr("twice"));
  EXPECT_THAT(message("tfft=1s"), HasSubstr("unknown service target \"tfft\""));
  EXPECT_THAT(message("ttft=1s,percentile=100"), HasSubstr("between 1 and 99.99"));
  EXPECT_THAT(message("percentile=90"), HasSubstr("neither ttft nor tpot"));
  EXPECT_THAT(message("ttft=1s,"), HasSubstr("has no value"));
}

TEST(ServiceTargetsTest, TextNamesWhatWasPromised) {
  EXPECT_EQ(ToText(ParseServiceTargets("ttft=1s,tpot=50ms").value()),
            "TTFT 1 s and TPOT 50 ms for 90 % of requests");
  EXPECT_EQ(ToText(ParseServiceTargets("ttft=200ms,percentile=99").value()),
            "TTFT 200 ms for 99 % of requests");
}

}  // namespace service_targets_test
}  // namespace zeus
