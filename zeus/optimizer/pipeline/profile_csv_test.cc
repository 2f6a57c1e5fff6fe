#include "zeus/optimizer/pipeline/profile_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "zeus/optimizer/pipeline/testing/random_problem.h"

namespace zeus::pipeline {
namespace profile_csv_test {

using ::testing::HasSubstr;

constexpr const char* kHeader = "stage,instruction,frequency,time,energy\n";

std::string WhyNot(const std::string& csv) {
  const auto profile = ParseProfileCsv(csv);
  return profile.ok() ? "it was accepted" : profile.error().message;
}

TEST(ProfileCsvTest, ReadsWhatItWrites) {
  const PipelineProfile profile = SyntheticProfile(3);
  const auto again = ParseProfileCsv(ToCsv(profile));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again.value().stages, 3);
  const InstructionProfile* const forward = again.value().Find(2, "forward");
  ASSERT_NE(forward, nullptr);
  ASSERT_EQ(forward->points.size(), profile.Find(2, "forward")->points.size());
  EXPECT_EQ(forward->points[3].time, profile.Find(2, "forward")->points[3].time);
  EXPECT_EQ(forward->points[3].energy, profile.Find(2, "forward")->points[3].energy);
}

TEST(ProfileCsvTest, ReadsTheNamesThatItQuotes) {
  for (const std::string name : {"forward, first", "say \"hi\"", "\"", " padded ", "a,\"b\",c"}) {
    PipelineProfile profile = SyntheticProfile(1);
    profile.instructions.front().instruction = name;
    const auto again = ParseProfileCsv(ToCsv(profile));
    ASSERT_TRUE(again.ok()) << name << ": " << again.error().message;
    EXPECT_NE(again.value().Find(0, name), nullptr) << name;
    EXPECT_EQ(ToCsv(again.value()).size(), ToCsv(profile).size());
  }
}

TEST(ProfileCsvTest, RefusesNamesThatDoNotFitOnALine) {
  const std::string header = kHeader;
  EXPECT_THAT(WhyNot(header + "0,\"for\nward\",1410,0.5,20\n"), HasSubstr("control character"));
  EXPECT_THAT(WhyNot(header + "0,\"forward,1410,0.5,20\n"), HasSubstr("line 2: a quotation mark"));
}

TEST(ProfileCsvTest, FindsColumnsInAnyOrderAmongOthers) {
  const auto profile = ParseProfileCsv(
      "\xef\xbb\xbf# measured yesterday\r\n"
      "energy, time ,gpu,frequency,instruction,stage\r\n"
      "20,0.5,A40,1410,\"forward\",0\r\n\r\n");
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  const OperatingPoint point = profile.value().Find(0, "forward")->points.front();
  EXPECT_EQ(point.clock.ToMega(), 1410);
  EXPECT_EQ(point.time, Seconds(0.5));
  EXPECT_EQ(point.energy, Joules(20));
}

TEST(ProfileCsvTest, TakesTheSlowestTensorParallelRankAndTheSumOfTheirEnergies) {
  const auto profile = ParseProfileCsv(
      "rank,dp_rank,pp_rank,tp_rank,stage,instruction,frequency,time,energy\n"
      "0,0,0,0,0,forward,1410,0.5,20\n"
      "1,0,0,1,0,forward,1410,0.6,30\n"
      "2,1,0,0,0,forward,1410,0.7,24\n"
      "3,1,0,1,0,forward,1410,0.4,26\n");
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  const OperatingPoint point = profile.value().Find(0, "forward")->points.front();
  EXPECT_EQ(point.time, Seconds(0.7));
  EXPECT_EQ(point.energy, Joules(50));  // Two replicas of 50 J.
}

TEST(ProfileCsvTest, RefusesWhatCannotBeAProfile) {
  const std::string header = kHeader;
  EXPECT_THAT(WhyNot(""), HasSubstr("no rows"));
  EXPECT_THAT(WhyNot(header), HasSubstr("no rows"));
  EXPECT_THAT(WhyNot("stage,frequency,time,energy\n0,1,1,1\n"), HasSubstr("instruction"));
  EXPECT_THAT(WhyNot(header + "0,forward,1410,0.5\n"), HasSubstr("line 2: has 4 fields"));
  EXPECT_THAT(WhyNot(header + "0,forward,1410,half,20\n"), HasSubstr("line 2: time: \"half\""));
  EXPECT_THAT(WhyNot(header + "0,forward,1410,nan,20\n"), HasSubstr("give a time"));
  EXPECT_THAT(WhyNot(header + "0,forward,1410,0.5,-20\n"), HasSubstr("-20 J at 1410 MHz"));
  EXPECT_THAT(WhyNot(header + "0,forward,1410,0,20\n"), HasSubstr("takes 0 s"));
  EXPECT_THAT(WhyNot(header + "0,forward,-1,0.5,20\n"), HasSubstr("not a clock"));
  EXPECT_THAT(WhyNot(header + "-1,forward,1410,0.5,20\n"), HasSubstr("line 2: stage"));
  EXPECT_THAT(WhyNot(header + "0,,1410,0.5,20\n"), HasSubstr("needs a name"));
  EXPECT_THAT(WhyNot(header + "0,forward,1410,0.5,20\n2,forward,1410,0.5,20\n"),
              HasSubstr("nothing about stage 1"));
  EXPECT_THAT(WhyNot(header + "0,forward,1410,0.5,20\n0,forward,1410,0.6,20\n"),
              HasSubstr("line 3: 1410 MHz stands there twice"));
}

TEST(ProfileCsvTest, RefusesAClockThatNotEveryRankWasMeasuredAt) {
  EXPECT_THAT(WhyNot("tp_rank,stage,instruction,frequency,time,energy\n"
                     "0,0,forward,1410,0.5,20\n"
                     "1,0,forward,1410,0.5,20\n"
                     "0,0,forward,1200,0.6,18\n"),
              HasSubstr("every rank must be measured at every clock"));
}

}  // namespace profile_csv_test
}  // namespace zeus::pipeline
