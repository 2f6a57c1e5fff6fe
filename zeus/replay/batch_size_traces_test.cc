// Replays the batch size policies on the recorded jobs of the Zeus paper and compares with the
// results of the reference's simulator. The traces are not part of the repository; without them the
// tests are skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "zeus/base/statistics.h"
#include "zeus/base/testing/sanitized.h"
#include "zeus/replay/job_comparison.h"
#include "zeus/replay/job_replay.h"
#include "zeus/replay/replay_job.h"
#include "zeus/replay/testing/trace_directory.h"

namespace zeus::replay {
namespace batch_size_traces_test {

constexpr int kSlowdown = zeus::testing::kSanitized ? 20 : 1;

JobReplay Replay(const ReplayJob& job, std::string policy, int seed) {
  auto replay = JobReplay::Make(job, {.name = std::move(policy)}, static_cast<std::uint64_t>(seed));
  EXPECT_TRUE(replay.ok()) << replay.error().message;
  return std::move(replay).value();
}

std::vector<ReplaySummary> ReplayManySeeds(const ReplayJob& job, std::string policy, int seeds) {
  auto summaries = ReplaySeeds(job, {.name = std::move(policy)}, seeds);
  EXPECT_TRUE(summaries.ok()) << summaries.error().message;
  return std::move(summaries).value();
}

ReplayJob FindJob(const std::vector<ReplayJob>& jobs, std::string_view label) {
  return *std::ranges::find(jobs, label, &ReplayJob::label);
}

class TracesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(TraceDirectory() / "summary_train.csv"))
      GTEST_SKIP() << "no traces in " << TraceDirectory()
                   << " (ZEUS_TRACE_DIR names another directory)";
  }

  static std::vector<ReplayJob> JobsOn(std::string_view gpu_model) {
    auto jobs = ReadReplayJobs(TraceDirectory(), gpu_model, 0.5);
    EXPECT_TRUE(jobs.ok()) << jobs.error().message;
    return jobs.ok() ? std::move(jobs).value() : std::vector<ReplayJob>();
  }
};

// Runs for each of the twelve settings (six jobs on two GPU models).
class SettingTest : public TracesTest, public ::testing::WithParamInterface<ReferenceFigures> {
 protected:
  void SetUp() override {
    TracesTest::SetUp();
    if (IsSkipped()) return;
    const std::string name(GetParam().name);
    const auto slash = name.find('/');
    job_ = FindJob(JobsOn(name.substr(0, slash)), name.substr(slash + 1));
  }

  ReplayJob job_;
};

TEST_P(SettingTest, TheOracleIsThatOfTheReference) {
  const ReferenceFigures& reference = GetParam();
  EXPECT_EQ(job_.recurrences(), reference.recurrences);
  const ReplayArm& oracle = job_.oracle();
  EXPECT_EQ(oracle.batch_size, reference.oracle_batch_size);
  EXPECT_EQ(oracle.best_limit, Watts(reference.oracle_limit));
  const double epochs = oracle.MeanEpochs(job_.max_epochs).value();
  const Usage usual = job_.DefaultUsage();
  EXPECT_NEAR(epochs * oracle.epoch.energy / usual.energy, reference.oracle_energy, 0.0006);
  EXPECT_NEAR(epochs * oracle.epoch.time / usual.time, reference.oracle_time, 0.0006);
  EXPECT_NEAR(usual.cost / job_.OracleCost(), reference.default_cost, 0.0006);
}

// Both figures are means over random runs, and the 50 seeds of the reference scatter as ours do;
// `rounded` is the precision with which the reference states its figure.
void ExpectNear(const std::vector<ReplaySummary>& replays, double ReplaySummary::*figure,
                double expected, double rounded) {
  constexpr int kReferenceSeeds = 50;
  const SampleSummary ours = SummarizeFigure(replays, figure);
  const double error =
      std::hypot(ours.StandardError(), ours.StandardDeviation() / std::sqrt(kReferenceSeeds));
  EXPECT_NEAR(ours.mean, expected, 3 * error + rounded);
}

TEST_P(SettingTest, ZeusDoesAsWellAsTheReference) {
  const ReferenceFigures& reference = GetParam();
  const auto replays = ReplayManySeeds(job_, "zeus", 400 / kSlowdown);
  ExpectNear(replays, &ReplaySummary::last_five_energy, reference.energy, 0.0006);
  ExpectNear(replays, &ReplaySummary::last_five_time, reference.time, 0.0006);
  ExpectNear(replays, &ReplaySummary::last_five_cost, reference.cost, 0.0006);
  ExpectNear(replays, &ReplaySummary::regret_of_50, reference.regret_of_50, 0.006);
  ExpectNear(replays, &ReplaySummary::regret, reference.regret, 0.006);
}

TEST_P(SettingTest, GridDoesAsWellAsTheReference) {
  const ReferenceFigures& reference = GetParam();
  const auto replays = ReplayManySeeds(job_, "grid", 400 / kSlowdown);
  ExpectNear(replays, &ReplaySummary::last_five_energy, reference.grid_energy, 0.0006);
  ExpectNear(replays, &ReplaySummary::last_five_time, reference.grid_time, 0.0006);
  ExpectNear(replays, &ReplaySummary::regret_of_50, reference.grid_regret_of_50, 0.06);
  ExpectNear(replays, &ReplaySummary::regret, reference.grid_regret, 0.06);
}

// The oracle has nothing to learn: only the scatter of single runs remains.
TEST_P(SettingTest, TheOracleRegretsNothing) {
  const auto replays = ReplayManySeeds(job_, "oracle", 400 / kSlowdown);
  const SampleSummary regret = SummarizeFigure(replays, &ReplaySummary::regret);
  EXPECT_NEAR(regret.mean, 0.0, 4 * regret.StandardError() + 1e-9);
  const SampleSummary cost = SummarizeFigure(ReplayManySeeds(job_, "default", 400 / kSlowdown),
                                             &ReplaySummary::last_five_cost);
  EXPECT_NEAR(cost.mean, GetParam().default_cost, 4 * cost.StandardError() + 0.0006);
}

// Works out the batch sizes that the reference's rules choose from its description: nested loops
// over the rounds, instead of the state machine that our policy keeps.
class ReferencePruning {
 public:
  explicit ReferencePruning(std::vector<ReplayedRun> runs) : runs_(std::move(runs)) {}

  // Returns the order of exploration and leaves the surviving batch sizes in `arms`.
  std::vector<int> Explore(std::vector<int>& arms, int start) {
    std::vector<int> order;
    for (int round = 0; round < 2; ++round) {
      std::vector<int> down, up, good;
      for (const int arm : arms) (arm <= start ? down : up).push_back(arm);
      std::ranges::reverse(down);
      Joules least(HUGE_VAL);
      for (const std::vector<int>& direction : {down, up}) {
        for (const int arm : direction) {
          const ReplayedRun run = runs_.at(order.size());
          order.push_back(arm);
          if (!run.converged) break;
          good.push_back(arm);
          if (run.usage.cost >= least) continue;
          least = run.usage.cost;
          start = arm;
        }
      }
      std::ranges::sort(good);
      arms = good;
    }
    return order;
  }

 private:
  std::vector<ReplayedRun> runs_;
};

TEST_P(SettingTest, ZeusExploresDecisionForDecisionAsTheReference) {
  for (int seed = 0; seed < 50; ++seed) {
    JobReplay replay = Replay(job_, "zeus", seed);
    std::vector<ReplayedRun> runs;
    std::vector<int> explored, sampled;
    for (int t = 0; t < job_.recurrences(); ++t) {
      for (const ReplayedRun& run : replay.Next().runs) {
        runs.push_back(run);
        (run.role == RunRole::kExploring ? explored : sampled).push_back(run.batch_size);
      }
    }
    std::vector<int> arms = job_.Spec("zeus", 0).batch_sizes;
    const std::vector<int> expected = ReferencePruning(runs).Explore(arms, job_.default_batch_size);
    ASSERT_EQ(explored, expected) << "seed " << seed;
    for (const int batch_size : sampled)
      ASSERT_TRUE(std::ranges::binary_search(arms, batch_size)) << batch_size;
  }
}

// Works out from the history alone how many epochs every run was allowed.
TEST_P(SettingTest, ZeusStopsRunsWhereTheReferenceDoes) {
  for (int seed = 0; seed < 20; ++seed) {
    JobReplay replay = Replay(job_, "zeus", seed);
    Joules least(HUGE_VAL);
    for (int t = 0; t < job_.recurrences(); ++t) {
      const ReplayedRecurrence recurrence = replay.Next();
      for (const ReplayedRun& run : recurrence.runs) {
        const double bound = 2 * least / job_.arm(run.batch_size).epoch.cost;
        const double allowed = std::min<double>(job_.max_epochs, std::floor(bound * (1 + 1e-9)));
        if (run.converged)
          ASSERT_LE(run.epochs, allowed);
        else
          ASSERT_EQ(run.epochs, allowed);
      }
      if (recurrence.runs.back().converged) least = std::min(least, recurrence.usage.cost);
    }
  }
}

TEST_P(SettingTest, KnowledgeGradientRegretsLessAndEndsAtTheOptimum) {
  const auto zeus = ReplayManySeeds(job_, "zeus", 1000 / kSlowdown);
  const auto gradient = ReplayManySeeds(job_, "knowledge_gradient", 1000 / kSlowdown);
  const SampleSummary zeus_regret = SummarizeFigure(zeus, &ReplaySummary::regret);
  const SampleSummary regret = SummarizeFigure(gradient, &ReplaySummary::regret);
  const SampleSummary cost = SummarizeFigure(gradient, &ReplaySummary::last_five_cost);
  // A sanitizer build runs few seeds, so the bound gets three standard errors of slack.
  const double unsure = kSlowdown > 1 ? 3.0 : 0.0;
  EXPECT_LE(regret.mean / zeus_regret.mean,
            0.90 + unsure * regret.StandardError() / zeus_regret.mean);
  EXPECT_LE(cost.mean, 1.015 + unsure * cost.StandardError());
}

std::string CaseName(const ::testing::TestParamInfo<ReferenceFigures>& instance) {
  std::string name(instance.param.name);
  std::ranges::replace(name, '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Jobs, SettingTest, ::testing::ValuesIn(kReferenceFigures), CaseName);

TEST_F(TracesTest, KnowledgeGradientHalvesTheRegretOfZeus) {
  double log_ratios = 0.0;
  int settings = 0;
  for (const char* const gpu_model : {"v100", "a40"}) {
    for (const ReplayJob& job : JobsOn(gpu_model)) {
      const auto zeus = ReplayManySeeds(job, "zeus", 150 / kSlowdown);
      const auto gradient = ReplayManySeeds(job, "knowledge_gradient", 150 / kSlowdown);
      log_ratios += std::log(SummarizeFigure(gradient, &ReplaySummary::regret).mean /
                             SummarizeFigure(zeus, &ReplaySummary::regret).mean);
      ++settings;
    }
  }
  ASSERT_EQ(settings, 12);
  // A sanitizer build runs few seeds, with which the mean is known to a tenth.
  EXPECT_LE(std::exp(log_ratios / settings), kSlowdown > 1 ? 0.55 : 0.50);
}

// Keeps only the batch sizes for which both GPU models have memory.
ReplayJob KeepCommonArms(ReplayJob job, const ReplayJob& other) {
  std::erase_if(job.arms, [&](const ReplayArm& arm) {
    return std::ranges::find(other.arms, arm.batch_size, &ReplayArm::batch_size) ==
           other.arms.end();
  });
  return job;
}

// Zeus §7: a job learned on V100s moves to A40s. Instead of starting over, 1 % of an epoch of each
// batch size is measured there, and charged.
class NewGpuModelTest : public TracesTest, public ::testing::WithParamInterface<const char*> {
 protected:
  static constexpr int kRecurrences = 40;

  // Returns the regret on the new GPU model in units of the oracle's cost there.
  static double Regret(JobReplay& replay, const ReplayJob& job) {
    double regret = 0.0;
    for (int t = 0; t < kRecurrences; ++t)
      regret += replay.Next().usage.cost / job.OracleCost() - 1;
    return regret;
  }

  static double RegretAfterMoving(const ReplayJob& from, const ReplayJob& to, int seed) {
    JobReplay replay = Replay(from, GetParam(), seed);
    for (int t = 0; t < kRecurrences; ++t) replay.Next();
    replay.MoveTo(to);
    double measuring = 0.0;
    for (const ReplayArm& arm : to.arms) {
      replay.policy().LearnEpochCost(to.gpu_model, arm.batch_size, arm.epoch.cost);
      measuring += 0.01 * (arm.profiling_epoch.cost / to.OracleCost());
    }
    return measuring + Regret(replay, to);
  }

  static double RegretOfStartingOver(const ReplayJob& job, int seed) {
    JobReplay replay = Replay(job, GetParam(), seed);
    return Regret(replay, job);
  }
};

TEST_P(NewGpuModelTest, WhatWasLearnedOnTheOldOneSavesRegret) {
  const auto old_jobs = JobsOn("v100");
  const auto new_jobs = JobsOn("a40");
  double moved = 0.0, fresh = 0.0;
  for (const ReplayJob& old_job : old_jobs) {
    const ReplayJob to = KeepCommonArms(FindJob(new_jobs, old_job.label), old_job);
    const ReplayJob from = KeepCommonArms(old_job, to);
    for (int seed = 0; seed < 20; ++seed) {
      moved += RegretAfterMoving(from, to, seed) / 120;
      fresh += RegretOfStartingOver(to, seed) / 120;
    }
  }
  EXPECT_LT(moved, 0.6 * fresh);
  std::cout << "regret per job: moved " << moved << ", starting over " << fresh << '\n';
}

INSTANTIATE_TEST_SUITE_P(Policies, NewGpuModelTest, ::testing::Values("zeus", "knowledge_gradient"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace batch_size_traces_test
}  // namespace zeus::replay
