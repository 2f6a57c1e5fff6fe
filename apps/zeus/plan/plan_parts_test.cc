#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "apps/zeus/plan/plan_flags.h"
#include "apps/zeus/plan/plan_report.h"

namespace zeus::cli {
namespace plan_parts_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int> Stages(const std::string& text, int profiled) {
  const auto stages = ParseStages(text, profiled);
  return stages.ok() ? stages.value() : std::vector<int>{};
}

TEST(ParseStagesTest, ANumberSpreadsThemAndKeepsTheEnds) {
  EXPECT_THAT(Stages("4", 8), ElementsAre(0, 2, 5, 7));
  EXPECT_THAT(Stages("8", 8), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(Stages("1", 8), ElementsAre(0));
}

TEST(ParseStagesTest, MoreThanWereMeasuredRepeatThoseInBetween) {
  EXPECT_THAT(Stages("8", 4), ElementsAre(0, 1, 2, 1, 2, 1, 2, 3));
  EXPECT_THAT(Stages("4", 2), ElementsAre(0, 0, 0, 1));
}

TEST(ParseStagesTest, AListIsTakenAsItIs) {
  EXPECT_THAT(Stages("3, 3,0", 4), ElementsAre(3, 3, 0));
  EXPECT_FALSE(ParseStages("0,4", 4).ok());
  EXPECT_FALSE(ParseStages("", 4).ok());
  EXPECT_FALSE(ParseStages("100000", 4).ok());
}

TEST(ParsePaceTargetTest, FactorsAreOfTheBaselineAndTimesAreTimes) {
  EXPECT_EQ(ParsePaceTarget("1.5x", "--pace").value().Of(2s), 3s);
  EXPECT_EQ(ParsePaceTarget("2900ms", "--pace").value().Of(2s), 2900ms);
  for (const char* const text : {"", "x", "-1x", "0s", "1y", "nanx", "1e9x"})
    EXPECT_FALSE(ParsePaceTarget(text, "--pace").ok()) << text;
}

pipeline::PipelinePlan TwoStages() {
  pipeline::PipelinePlan plan{.time = 4s};
  plan.stages = {{{"forward", 0, 0, 1410_MHz, 0s, 2s, 600_J}},
                 {{"backward", 7, 1, 0_MHz, 2s, 2s, 160_J}}};
  return plan;
}

TEST(TimelineTest, NamesAreShortInPicturesAndLongInWords) {
  const auto plan = TwoStages();
  EXPECT_EQ(ShortName(plan.stages[0][0]), "F0");
  EXPECT_EQ(ShortName(plan.stages[1][0]), "B7.1");
  EXPECT_EQ(LongName(plan.stages[0][0]), "forward of microbatch 0 at 1410 MHz, 2 s");
  EXPECT_EQ(LongName(plan.stages[1][0]), "backward of microbatch 7, chunk 1, 2 s");
}

TEST(PipelinePictureTest, WorkIsShadedByPowerAndWaitingIsBlank) {
  const auto plan = TwoStages();
  const PictureFrame frame{.width = 51, .until = 4s, .powers = FindPowerRange({&plan}, 70_W)};
  const std::string picture = PipelinePicture(plan, frame);
  std::string full = "stage 0   F0";
  std::string pale = "stage 1   " + std::string(20, ' ') + "B7.1";
  for (int i = 0; i < 18; ++i) full += "█";
  for (int i = 0; i < 16; ++i) pale += "░";
  EXPECT_EQ(picture, full + "\n" + pale + "\n");
  EXPECT_THAT(PictureLegend(frame), HasSubstr("70 W ░▒▓█ 300 W"));
}

TEST(PipelinePictureTest, OfVeryManyStagesSomeAreShown) {
  pipeline::PipelinePlan plan = TwoStages();
  plan.stages.resize(200);
  const std::string picture =
      PipelinePicture(plan, {.width = 80, .until = 4s, .powers = FindPowerRange({&plan}, 70_W)});
  EXPECT_LE(std::ranges::count(picture, '\n'), 50);
  EXPECT_THAT(picture, HasSubstr("stage 199"));
}

}  // namespace plan_parts_test
}  // namespace zeus::cli
