#include "zeus/optimizer/batch_size/epoch_cost_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "zeus/optimizer/batch_size/epoch_belief.h"

namespace zeus {
namespace epoch_cost_table_test {

TEST(EpochCostTableTest, TheFirstMeasurementStays) {
  EpochCostTable table;
  table.LearnOnce("V100", 32, Joules(10));
  table.LearnOnce("V100", 32, Joules(20));
  EXPECT_EQ(table.Profiled("V100", 32), Joules(10));
  EXPECT_EQ(table.Profiled("V100", 64), std::nullopt);
  EXPECT_EQ(table.Profiled("A40", 32), std::nullopt);
}

TEST(EpochCostTableTest, RefinedCostsFollowTheMeasurements) {
  EpochCostTable table;
  table.Refine("V100", 32, Joules(10));
  table.Refine("V100", 32, Joules(20));
  EXPECT_EQ(table.Profiled("V100", 32), Joules(15));
  for (int i = 0; i < 100; ++i) table.Refine("V100", 32, Joules(40));
  EXPECT_NEAR(table.Profiled("V100", 32)->value(), 40, 0.01);
}

TEST(EpochCostTableTest, WhatIsNoCostIsNoMeasurement) {
  EpochCostTable table;
  for (const double cost : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    table.LearnOnce("V100", 32, Joules(cost));
  EXPECT_EQ(table.Estimate("V100", 32), std::nullopt);
  EXPECT_EQ(table.home(), "");
}

TEST(EpochCostTableTest, CostsAreTranslatedByTheRatioAtTheNearestCommonBatchSize) {
  EpochCostTable table;
  for (const int batch_size : {8, 32, 128})
    table.LearnOnce("V100", batch_size, Joules(1000.0 / batch_size));
  table.LearnOnce("A40", 8, Joules(2 * 125.0));
  table.LearnOnce("A40", 128, Joules(3 * 7.8125));
  EXPECT_DOUBLE_EQ(table.Translated("A40", 32)->value(), 2 * 31.25);  // As near to 8 as to 128.
  table.LearnOnce("V100", 64, Joules(16));
  EXPECT_DOUBLE_EQ(table.Translated("A40", 64)->value(), 3 * 16.0);
  EXPECT_EQ(table.Translated("H100", 64), Joules(16));  // Better than nothing.
  EXPECT_EQ(table.home(), "V100");
}

TEST(EpochCostTableTest, TheEstimateIsTheBestThereIs) {
  EpochCostTable table;
  EXPECT_EQ(table.Estimate("V100", 32), std::nullopt);
  table.LearnOnce("V100", 32, Joules(10));
  EXPECT_EQ(table.Estimate("V100", 32), Joules(10));
  EXPECT_EQ(table.Estimate("V100", 64), Joules(10));
  EXPECT_EQ(table.Estimate("A40", 64), Joules(10));
}

class EpochCostBeliefTest : public ::testing::Test {
 protected:
  EpochCostBelief At(std::size_t index) {
    return BelieveEpochCosts(table_, "V100", kBatchSizes)[index].value();
  }
  double CostAt(std::size_t index) { return std::exp(At(index).log_cost); }

  static constexpr std::array kBatchSizes = {8, 16, 32, 64, 128};
  EpochCostTable table_;
};

TEST_F(EpochCostBeliefTest, NothingMeasuredIsNothingKnown) {
  for (const auto& belief : BelieveEpochCosts(table_, "V100", kBatchSizes))
    EXPECT_FALSE(belief.has_value());
}

TEST_F(EpochCostBeliefTest, FromOneMeasurementCostsFallTowardsLargerBatchSizes) {
  table_.LearnOnce("V100", 32, Joules(10));
  EXPECT_TRUE(At(2).profiled);
  EXPECT_EQ(At(2).sigma, 0);
  EXPECT_NEAR(CostAt(4), 10 * std::exp(-0.4), 1e-9);
  EXPECT_NEAR(CostAt(1), 10 * std::exp(0.25), 1e-9);
  EXPECT_NEAR(At(4).sigma, 0.4, 1e-9);
  EXPECT_FALSE(At(4).profiled);
}

TEST_F(EpochCostBeliefTest, TwoMeasurementsFixTheCurve) {
  table_.LearnOnce("V100", 16, Joules(100.0 / 16 + 3));
  table_.LearnOnce("V100", 64, Joules(100.0 / 64 + 3));
  EXPECT_NEAR(CostAt(2), 100.0 / 32 + 3, 1e-9);
  EXPECT_NEAR(CostAt(0), 100.0 / 8 + 3, 1e-9);
  EXPECT_NEAR(CostAt(4), 100.0 / 128 + 3, 1e-9);
  EXPECT_NEAR(At(2).sigma, 0.05, 1e-9);
  EXPECT_NEAR(At(4).sigma, 0.12, 1e-9);
}

TEST_F(EpochCostBeliefTest, NoiseMakesEpochsNeitherFreeNorCheaperTowardsSmallBatchSizes) {
  table_.LearnOnce("V100", 32, Joules(10));
  table_.LearnOnce("V100", 64, Joules(11));
  EXPECT_NEAR(CostAt(0), 10, 1e-9);
  EpochCostTable steep;
  steep.LearnOnce("V100", 32, Joules(30));
  steep.LearnOnce("V100", 64, Joules(10));
  table_ = steep;
  EXPECT_NEAR(CostAt(4), 5, 1e-9);
}

TEST_F(EpochCostBeliefTest, CostsOfAnotherModelAreUncertain) {
  table_.LearnOnce("A40", 32, Joules(10));
  EXPECT_NEAR(CostAt(2), 10, 1e-9);
  EXPECT_GT(At(2).sigma, 0);
  EXPECT_FALSE(At(2).profiled);
}

}  // namespace epoch_cost_table_test
}  // namespace zeus
