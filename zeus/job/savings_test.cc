#include "zeus/job/savings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <vector>

#include "zeus/base/testing/temporary_directory.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/job/testing/local_job_service_fixture.h"

namespace zeus {
namespace savings_test {

using ::testing::HasSubstr;
using namespace literals;
using namespace std::chrono_literals;

class SavingsTest : public LocalJobServiceTest {
 protected:
  // A run that reaches the target and takes so much.
  void Add(RunRole role, std::int64_t recurrence, Joules energy) {
    trials_.push_back({.job_id = "job",
                       .number = static_cast<std::int64_t>(trials_.size()) + 1,
                       .recurrence = recurrence,
                       .batch_size = role == RunRole::kBaseline ? 32 : 8,
                       .role = role,
                       .gpu_model = "V100",
                       .status = TrialStatus::kConverged,
                       .time = Seconds(energy.value() / 10),
                       .energy = energy,
                       .cost = energy,
                       .undisturbed = role == RunRole::kBaseline});
  }
  JobSavings Savings() const { return ComputeSavings({.spec = Spec(), .trials = trials_}); }

  std::vector<Trial> trials_;
};

TEST_F(SavingsTest, WithoutUndisturbedRunsOfTheDefaultTheyAreNotKnown) {
  for (int recurrence = 0; recurrence < 9; ++recurrence)
    Add(RunRole::kExploiting, recurrence, 60_J);
  trials_[0].batch_size = 32;  // A run of the default, but under Zeus.
  EXPECT_FALSE(Savings().saved);
  EXPECT_THAT(Savings().unknown_because, HasSubstr("there are 0 undisturbed runs of the default"));
  EXPECT_THAT(Savings().unknown_because, HasSubstr("--baseline"));
  Add(RunRole::kBaseline, 9, 100_J);
  EXPECT_FALSE(Savings().saved);
  EXPECT_THAT(Savings().unknown_because, HasSubstr("there is 1 undisturbed run of the default"));
  Add(RunRole::kBaseline, 10, 100_J);
  EXPECT_TRUE(Savings().saved);
  EXPECT_EQ(Savings().unknown_because, "");
}

TEST_F(SavingsTest, EverythingThatRanUnderZeusIsCharged) {
  Add(RunRole::kBaseline, 0, 100_J);
  Add(RunRole::kBaseline, 1, 100_J);
  Add(RunRole::kExploring, 2, 90_J);
  Add(RunRole::kExploring, 3, 30_J);
  trials_.back().status = TrialStatus::kStopped;  // Another try of the recurrence follows.
  Add(RunRole::kExploring, 3, 60_J);
  Add(RunRole::kExploiting, 4, 40_J);
  trials_.back().status = TrialStatus::kFailed;  // No try of this one reached the target.
  Add(RunRole::kExploiting, 5, 60_J);
  const JobSavings savings = Savings();
  ASSERT_TRUE(savings.saved);
  EXPECT_EQ(savings.zeus.count, 3);
  EXPECT_EQ(savings.runs, 5);
  EXPECT_NEAR(savings.zeus.energy.mean, (90 + 30 + 60 + 40 + 60) / 3.0, 1e-9);
  EXPECT_NEAR(savings.saved->energy.percent, 100 * (1 - 280.0 / 300), 1e-9);
  EXPECT_NEAR(savings.saved->energy.total, 300 - 280, 1e-9);
  EXPECT_GT(savings.saved->energy.percent_sigma, 0);
}

TEST_F(SavingsTest, TheSigmaIsThatOfADifferenceOfMeansOfFewRuns) {
  for (const Joules energy : {90_J, 100_J, 110_J}) Add(RunRole::kBaseline, 0, energy);
  std::int64_t recurrence = 1;
  for (const Joules energy : {40_J, 50_J, 60_J, 50_J})
    Add(RunRole::kExploiting, recurrence++, energy);
  const JobSavings savings = Savings();
  ASSERT_TRUE(savings.saved);
  // Standard errors times the quantiles of Student's distribution with 2 and 3 degrees of freedom.
  const double baseline = 10 / std::sqrt(3.0) * 1.3213;
  const double own = std::sqrt(200.0 / 3 / 4) * 1.1969;
  EXPECT_NEAR(*savings.baseline.energy.sigma, baseline, 0.01);
  EXPECT_NEAR(*savings.zeus.energy.sigma, own, 0.01);
  EXPECT_NEAR(savings.saved->energy.percent, 50, 1e-9);
  EXPECT_NEAR(savings.saved->energy.percent_sigma, std::hypot(own, 0.5 * baseline), 0.02);
  EXPECT_NEAR(savings.saved->energy.total_sigma, 4 * std::hypot(own, baseline), 0.05);
}

TEST_F(SavingsTest, DisturbedAndForeignRunsAreNoBaseline) {
  const JobSpec spec = Spec();
  Add(RunRole::kBaseline, 0, 100_J);
  const Trial good = trials_.front();
  EXPECT_TRUE(IsUndisturbedDefault(good, spec));
  const auto but = [&](auto change) {
    Trial trial = good;
    change(trial);
    return IsUndisturbedDefault(trial, spec);
  };
  EXPECT_FALSE(but([](Trial& trial) { trial.undisturbed = false; }));
  EXPECT_FALSE(but([](Trial& trial) { trial.shared = true; }));
  EXPECT_FALSE(but([](Trial& trial) { trial.unmeasured = true; }));
  EXPECT_FALSE(but([](Trial& trial) { trial.batch_size = 16; }));
  EXPECT_FALSE(but([](Trial& trial) { trial.status = TrialStatus::kStopped; }));
  EXPECT_FALSE(but([](Trial& trial) { trial.role = RunRole::kExploring; }));
  JobSpec without_zeus = spec;
  without_zeus.policy = "default";
  Trial usual = good;
  usual.role = RunRole::kExploiting;
  EXPECT_TRUE(IsUndisturbedDefault(usual, without_zeus));
}

TEST_F(SavingsTest, RunsOnSharedGpusAreLeftOutAndCounted) {
  Add(RunRole::kBaseline, 0, 100_J);
  Add(RunRole::kBaseline, 1, 100_J);
  Add(RunRole::kExploiting, 2, 50_J);
  Add(RunRole::kExploiting, 3, 50_J);
  Add(RunRole::kExploiting, 4, 10_J);
  trials_.back().shared = true;
  EXPECT_EQ(Savings().shared, 1);
  EXPECT_NEAR(Savings().saved->energy.percent, 50, 1e-9);
}

TEST_F(SavingsTest, RunsWithoutAMeasuredEnergyAreLeftOutAndCounted) {
  Add(RunRole::kBaseline, 0, 100_J);
  Add(RunRole::kBaseline, 1, 100_J);
  Add(RunRole::kExploiting, 2, 50_J);
  Add(RunRole::kExploiting, 3, 50_J);
  Add(RunRole::kExploiting, 4, 0_J);
  trials_.back().unmeasured = true;
  EXPECT_EQ(Savings().unmeasured, 1);
  EXPECT_EQ(Savings().shared, 0);
  EXPECT_NEAR(Savings().saved->energy.percent, 50, 1e-9);
}

TEST_F(SavingsTest, ABaselineRunIsTheDefaultIsNeverStoppedEarlyAndTeachesNothing) {
  Register(Spec());
  Converge(Start().trial.number, 2);
  const std::string state = service_.GetJob("job").value().policy_state.dump();
  for (int run = 0; run < 2; ++run) {
    const StartedTrial baseline = Start({.baseline = true});
    EXPECT_EQ(baseline.trial.batch_size, 32);
    EXPECT_EQ(baseline.trial.role, RunRole::kBaseline);
    EXPECT_EQ(baseline.max_epochs, 10);
    // Far beyond twice the least cost, where a run of the policy ends.
    for (int epoch = 1; epoch < 9; ++epoch)
      EXPECT_FALSE(ReportEpoch(baseline.trial.number, epoch, 0.1).value().stop);
    const auto end = service_.Report({.job_id = "job",
                                      .trial = baseline.trial.number,
                                      .epoch = 9,
                                      .time = 9s,
                                      .energy = 90_J,
                                      .metric = 0.95,
                                      .undisturbed = true});
    ASSERT_TRUE(end.ok());
    EXPECT_TRUE(end.value().converged);
  }
  EXPECT_EQ(service_.GetJob("job").value().policy_state.dump(), state);
  EXPECT_EQ(service_.GetJob("job").value().least_cost, 20_J);
  ExpectBeliefIsThatOfTheEvents();
  Converge(Start().trial.number, 2);
  const auto savings = service_.GetSavings({.job_id = "job"});
  ASSERT_TRUE(savings.ok() && savings.value().saved);
  EXPECT_EQ(savings.value().baseline.count, 2);
  EXPECT_NEAR(savings.value().baseline.energy.mean, 90, 1e-9);
}

TEST_F(SavingsTest, ARunOnSharedGpusTeachesNothing) {
  Register(Spec());
  const std::int64_t trial = Start().trial.number;
  const auto end = service_.Report({.job_id = "job",
                                    .trial = trial,
                                    .epoch = 2,
                                    .time = 2s,
                                    .energy = 20_J,
                                    .metric = 0.95,
                                    .shared = true});
  ASSERT_TRUE(end.ok() && end.value().converged);
  EXPECT_TRUE(end.value().trial.shared);
  EXPECT_FALSE(service_.GetJob("job").value().least_cost);
  const auto arms = service_.GetArms("job", "").value();
  for (const ArmBelief& arm : arms.arms) EXPECT_EQ(arm.runs, 0);
  ExpectBeliefIsThatOfTheEvents();
}

TEST_F(SavingsTest, SavedEnergyIsAlsoEmissionsAndMoneyOfTheRunsThatAreCharged) {
  SystemClock clock;
  zeus::testing::TemporaryDirectory directory;
  const WallTime start = ParseWallTime("2024-01-01T00:00:00Z").value();
  // One hour with an intensity of 100, the next with 400.
  const auto grid = directory.AddFile(
      "grid.csv", "time,grams_per_kwh\n2024-01-01T00:00:00Z,100\n2024-01-01T01:00:00Z,400\n");
  const auto accounting = CarbonAccounting::Open(clock, {.carbon = grid, .price = "2EUR"});
  ASSERT_TRUE(accounting.ok()) << accounting.error().message;
  const auto at = [&](std::chrono::minutes after) {
    trials_.back().started_at = start + after;
    trials_.back().ended_at = start + after + 10min;
  };
  JobSavings unknown = Savings();
  AddSavedCarbon(accounting.value(), trials_, unknown);
  EXPECT_FALSE(unknown.saved_carbon);
  Add(RunRole::kBaseline, 0, Joules(4e6));
  at(70min);
  Add(RunRole::kBaseline, 1, Joules(4e6));
  at(70min);
  Add(RunRole::kExploring, 2, Joules(3e6));
  at(0min);
  Add(RunRole::kExploiting, 3, Joules(1e6));
  at(70min);
  Add(RunRole::kExploiting, 4, Joules(9e6));  // Left out with its recurrence: its GPU was shared.
  trials_.back().shared = true;
  at(0min);
  Add(RunRole::kExploiting, 4, Joules(9e6));
  at(0min);
  JobSavings savings = Savings();
  AddSavedCarbon(accounting.value(), trials_, savings);
  ASSERT_TRUE(savings.saved_carbon && savings.saved_carbon->emissions &&
              savings.saved_carbon->cost);
  EXPECT_NEAR(savings.saved->energy.total, 4e6, 1);
  // Three quarters of the energy were spent, and saved, in the first hour.
  const double kwh = 4e6 / 3.6e6;
  EXPECT_NEAR(savings.saved_carbon->emissions->amount.value(), kwh * (0.75 * 100 + 0.25 * 400),
              1e-6);
  EXPECT_NEAR(savings.saved_carbon->cost->amount.value(), 2 * kwh, 1e-9);
  EXPECT_NEAR(savings.saved_carbon->cost->sigma.value(),
              2 * savings.saved->energy.total_sigma / 3.6e6, 1e-9);
}

TEST_F(SavingsTest, EnergyThatZeusTookMoreIsNegativeMoney) {
  SystemClock clock;
  const auto accounting = CarbonAccounting::Open(clock, {.price = "2EUR"});
  ASSERT_TRUE(accounting.ok());
  for (std::int64_t recurrence = 0; recurrence < 2; ++recurrence) {
    Add(RunRole::kBaseline, recurrence, Joules(3.6e6));
    Add(RunRole::kExploiting, recurrence + 2, Joules(7.2e6));
  }
  JobSavings savings = Savings();
  AddSavedCarbon(accounting.value(), trials_, savings);
  ASSERT_TRUE(savings.saved_carbon);
  EXPECT_FALSE(savings.saved_carbon->emissions);
  EXPECT_NEAR(savings.saved_carbon->cost->amount.value(), -4, 1e-9);
}

}  // namespace savings_test
}  // namespace zeus
