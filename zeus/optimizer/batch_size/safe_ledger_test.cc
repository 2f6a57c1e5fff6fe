#include "zeus/optimizer/batch_size/safe_ledger.h"

#include <gtest/gtest.h>

#include <cmath>

#include "zeus/base/json.h"

namespace zeus {
namespace safe_ledger_test {

// The default needs 10 epochs, well known.
constexpr double kUsualEpochs = 10.0;
SafeLedger::Default Usual() { return {.log_epochs = std::log(kUsualEpochs), .variance = 1e-9}; }

SafeLedger::Risk Costs(double epochs, double sigma = 0.0) {
  return {.log_cost = std::log(epochs), .variance = sigma * sigma};
}

TEST(SafeLedgerTest, WhatSurelyCostsLessThanTheDefaultIsAllowed) {
  const SafeLedger ledger(0.05);
  EXPECT_TRUE(ledger.Allows(Usual(), Costs(9)));
  EXPECT_TRUE(ledger.Allows(Usual(), Costs(10.4))) << "5 % more than 10 is 10.5";
  EXPECT_FALSE(ledger.Allows(Usual(), Costs(10.6)));
}

TEST(SafeLedgerTest, TheBadEndOfTheCostMustKeepToTheBound) {
  const SafeLedger ledger(0.05);
  EXPECT_TRUE(ledger.Allows(Usual(), Costs(6, 0.2))) << "with 97.5 %, at most 6 e^0.39 = 8.9";
  EXPECT_FALSE(ledger.Allows(Usual(), Costs(8, 0.2))) << "8 e^0.39 = 11.8";
}

TEST(SafeLedgerTest, EveryRunWithTheDefaultAddsItsShareToWhatMayBeRisked) {
  SafeLedger ledger(0.05);
  EXPECT_FALSE(ledger.Allows(Usual(), Costs(12)));
  for (int run = 0; run < 4; ++run) ledger.AddDefaultRun(kUsualEpochs);
  EXPECT_TRUE(ledger.Allows(Usual(), Costs(12))) << "5 % of 50 are 2.5";
  EXPECT_NEAR(ledger.Allowance(Usual()), 2.5, 1e-6);
}

TEST(SafeLedgerTest, SavingsPayForRisks) {
  SafeLedger ledger(0.0);
  EXPECT_FALSE(ledger.Allows(Usual(), Costs(13)));
  ledger.AddOtherRun(6, true);
  EXPECT_TRUE(ledger.Allows(Usual(), Costs(13)));
  ledger.AddOtherRun(3, false);
  EXPECT_FALSE(ledger.Allows(Usual(), Costs(13))) << "the failed run cost 3 of the 4 saved";
  EXPECT_NEAR(ledger.Allowance(Usual()), 1, 1e-6);
}

TEST(SafeLedgerTest, LaterRisksAreTakenWithMoreCaution) {
  SafeLedger ledger(0.05);
  EXPECT_TRUE(ledger.Allows(Usual(), Costs(7, 0.2)));
  for (int risk = 0; risk < 5; ++risk) ledger.CountRisk();
  EXPECT_FALSE(ledger.Allows(Usual(), Costs(7, 0.2)));
  EXPECT_TRUE(ledger.Allows(Usual(), Costs(7, 0.1)));
}

TEST(SafeLedgerTest, ALedgerIsReadAsItWasWritten) {
  SafeLedger ledger(0.05);
  ledger.AddDefaultRun(10);
  ledger.AddOtherRun(3, false);
  ledger.CountRisk();
  SafeLedger again(0.05);
  ASSERT_TRUE(again.Restore(ledger.Save()).ok());
  EXPECT_EQ(again.Save(), ledger.Save());
  EXPECT_FALSE(again.Restore(Json::array({-1, 0, 0, 0})).ok());
  EXPECT_FALSE(again.Restore(Json()).ok());
}

}  // namespace safe_ledger_test
}  // namespace zeus
