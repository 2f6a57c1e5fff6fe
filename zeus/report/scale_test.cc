#include "zeus/report/scale.h"

#include <gmock/gmock.h>

#include <cmath>

namespace zeus::report {
namespace scale_test {

using ::testing::ElementsAre;

std::vector<std::string> Labels(const Axis& axis, double low, double high, int ticks = 5) {
  std::vector<std::string> labels;
  const Scale scale(axis, {low, high}, 0, 100, ticks);
  for (const Scale::Tick& tick : scale.ticks()) labels.push_back(tick.label);
  return labels;
}

TEST(ScaleTest, TicksAreRoundNumbers) {
  EXPECT_THAT(Labels({.title = "", .from_zero = true}, 3, 97), ElementsAre("0", "50", "100"));
  EXPECT_THAT(Labels({}, 0.1, 0.32, 6), ElementsAre("0.1", "0.15", "0.2", "0.25", "0.3"));
  EXPECT_THAT(Labels({}, -2, 2), ElementsAre("−2", "−1", "0", "1", "2"));
}

TEST(ScaleTest, LogarithmicTicksAreDecadesOrTheirParts) {
  const Axis axis{.title = "", .logarithmic = true};
  EXPECT_THAT(Labels(axis, 1, 1e6), ElementsAre("1", "100", "10k", "1M"));
  EXPECT_THAT(Labels(axis, 8, 130), ElementsAre("10", "20", "30", "50", "100"));
  EXPECT_THAT(Labels(axis, 1e-6, 1e-4), ElementsAre("10⁻⁶", "3×10⁻⁶", "10⁻⁵", "3×10⁻⁵", "10⁻⁴"));
  EXPECT_THAT(Labels(axis, 3e4, 1.4e5), ElementsAre("30k", "50k", "100k"));
}

TEST(ScaleTest, EndsOfTheScaleLieInside) {
  const Scale scale({}, {10, 20}, 300, 100, 5);
  EXPECT_NEAR(scale.Place(10), 300 - 200 * 0.04 / 1.08, 1e-9);
  EXPECT_GT(scale.Place(10), scale.Place(20));
}

TEST(ScaleTest, ASingleValueHasRoomAroundIt) {
  const Scale scale({}, {7, 7}, 0, 100, 5);
  EXPECT_NEAR(scale.Place(7), 50, 1e-9);
}

TEST(ScaleTest, NothingToShowIsStillAnAxis) {
  EXPECT_FALSE(Scale({}, {}, 0, 100, 5).ticks().empty());
  EXPECT_FALSE(Scale({.title = "", .logarithmic = true}, {}, 0, 100, 5).logarithmic());
}

TEST(ScaleTest, WhatIsNotANumberHasNoPlace) {
  EXPECT_TRUE(std::isnan(Scale({}, {0, 1}, 0, 1, 5).Place(std::nan(""))));
  EXPECT_TRUE(std::isnan(Scale({.title = "", .logarithmic = true}, {1, 9}, 0, 1, 5).Place(0)));
}

TEST(ScaleTest, CategoriesLieInTheMiddleOfTheirSlots) {
  const Scale scale({.title = "", .categories = {"a", "b"}}, {}, 0, 100, 5);
  EXPECT_DOUBLE_EQ(scale.Place(0), 25);
  EXPECT_DOUBLE_EQ(scale.Place(1), 75);
}

TEST(ScaleTest, BarsStandOnZeroAndHaveRoomAtTheEnds) {
  const Panel panel{.series = {{.mark = Mark::kBars, .x = {1, 2}, .y = {5, 9}}}};
  EXPECT_EQ(ComputeExtent(panel, Direction::kY).low, 0);
  EXPECT_EQ(ComputeExtent(panel, Direction::kX).low, 0.5);
  EXPECT_EQ(ComputeExtent(panel, Direction::kX).high, 2.5);
}

TEST(ScaleTest, TheSpreadBelongsToTheExtentAndNaNDoesNot) {
  const Panel panel{.series = {{.x = {1, 2, std::nan("")},
                                .y = {5, std::nan(""), 1e300},
                                .low = {3, std::nan(""), 1e300},
                                .high = {8, INFINITY, 1e300}}}};
  EXPECT_EQ(ComputeExtent(panel, Direction::kY).low, 3);
  EXPECT_EQ(ComputeExtent(panel, Direction::kX).high, 2);
}

}  // namespace scale_test
}  // namespace zeus::report
