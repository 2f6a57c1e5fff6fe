#include "zeus/replay/cluster/cluster_replay.h"

#include <gmock/gmock.h>

#include <atomic>
#include <tuple>

#include "zeus/replay/cluster/generator.h"
#include "zeus/replay/cluster/testing/made_jobs.h"
#include "zeus/replay/job_replay.h"

namespace zeus::replay {
namespace cluster_replay_test {

using testing::HopelessJob;
using testing::MadeClusterJob;

ClusterTotals Replay(const ReplayJob& job, const char* contender,
                     const std::vector<ClusterJob>& submissions, std::uint64_t seed = 1) {
  return ReplayGroup(job, {.name = contender}, seed, submissions).value();
}

std::vector<ClusterJob> OneAfterTheOther(int jobs, double ratio = 1.0) {
  std::vector<ClusterJob> submissions;
  for (int i = 0; i < jobs; ++i)
    submissions.push_back(
        {.start = Seconds(100 * i), .end = Seconds(100 * i + 2), .runtime_ratio = ratio});
  return submissions;
}

std::vector<ClusterJob> AllAtOnce(int jobs) {
  return std::vector<ClusterJob>(static_cast<std::size_t>(jobs),
                                 {.start = Seconds(0), .end = Seconds(10)});
}

TEST(GroupReplayTest, JobsOneAfterTheOtherAreTheRecurrencesOfAJob) {
  const ReplayJob job = MadeClusterJob("neumf", Seconds(1));
  for (const char* const contender : {"default", "grid", "zeus", "knowledge_gradient", "oracle"}) {
    JobReplay alone = JobReplay::Make(job, {.name = contender}, 1).value();
    Usage usage;
    std::int64_t runs = 0;
    for (int i = 0; i < 100; ++i) {
      const ReplayedRecurrence& recurrence = alone.Next();
      usage += recurrence.usage;
      for (const ReplayedRun& run : recurrence.runs) runs += run.epochs > 0 ? 1 : 0;
    }
    const ClusterTotals totals = Replay(job, contender, OneAfterTheOther(100));
    EXPECT_EQ(totals.jobs, 100);
    EXPECT_EQ(totals.runs, runs) << contender;
    EXPECT_NEAR(totals.usage.cost / usage.cost, 1.0, 1e-9) << contender;
    EXPECT_EQ(totals.concurrent, 0) << contender;
  }
}

TEST(GroupReplayTest, WhoStartsWhileAnotherExploresRunsWhatIsKnown) {
  const ReplayJob job = MadeClusterJob("neumf", Seconds(1));
  const ClusterTotals totals = Replay(job, "zeus", AllAtOnce(20));
  EXPECT_EQ(totals.concurrent, 19) << "nothing is known before the first has ended";
  EXPECT_EQ(totals.unfinished, 0);
}

TEST(GroupReplayTest, AResultIsKnownWhenItsJobEnds) {
  const ReplayJob job = MadeClusterJob("neumf", Seconds(1));
  const std::vector<ClusterJob> at_its_end{{.start = Seconds(0), .end = Seconds(10)},
                                           {.start = Seconds(10), .end = Seconds(20)}};
  EXPECT_EQ(Replay(job, "zeus", at_its_end).concurrent, 0);
  const std::vector<ClusterJob> before{{.start = Seconds(0), .end = Seconds(10)},
                                       {.start = Seconds(9), .end = Seconds(20)}};
  EXPECT_EQ(Replay(job, "zeus", before).concurrent, 1);
}

TEST(GroupReplayTest, UsageIsScaledByTheRatioAndDecisionsAreNot) {
  const ReplayJob job = MadeClusterJob("neumf", Seconds(1));
  const ClusterTotals once = Replay(job, "zeus", OneAfterTheOther(50));
  const ClusterTotals twice = Replay(job, "zeus", OneAfterTheOther(50, 2.0));
  EXPECT_DOUBLE_EQ(twice.usage.energy.value(), 2 * once.usage.energy.value());
  EXPECT_EQ(twice.runs, once.runs);
  EXPECT_DOUBLE_EQ(twice.ratios, 100);
}

TEST(GroupReplayTest, AFailedTryIsRepeatedWhenItsTimeIsOver) {
  // Batch size 8 never arrives and is stopped early, once the first job has shown what the target
  // costs.
  ReplayJob job = MadeClusterJob("neumf", Seconds(1));
  job.arms[0].epochs_to_target = {std::nullopt};
  std::vector<ClusterJob> submissions = OneAfterTheOther(30);
  const ClusterTotals totals = Replay(job, "zeus", submissions);
  EXPECT_GT(totals.retries, 0);
  EXPECT_EQ(totals.runs, totals.jobs + totals.retries);
  EXPECT_EQ(totals.unfinished, 0);
}

TEST(GroupReplayTest, AJobThatNeverConvergesEndsUnfinished) {
  const ReplayJob job = HopelessJob();
  for (const char* const contender : {"default", "grid", "zeus", "knowledge_gradient", "oracle"}) {
    const ClusterTotals totals = Replay(job, contender, OneAfterTheOther(10));
    EXPECT_EQ(totals.jobs, 10) << contender;
    EXPECT_EQ(totals.unfinished, 10) << contender;
  }
  EXPECT_EQ(Replay(job, "zeus", AllAtOnce(10)).unfinished, 10);
}

TEST(GroupReplayTest, AnUnknownContenderIsRefused) {
  const ReplayJob job = MadeClusterJob("neumf", Seconds(1));
  EXPECT_EQ(ReplayGroup(job, {.name = "best"}, 1, {}).error().code, ErrorCode::kInvalidArgument);
}

TEST(GroupSeedTest, IsTheChecksumOfTheNameAsTheReferenceHasIt) {
  EXPECT_EQ(GroupSeed("Wikipedia", 0), 0x11E60398U);
  EXPECT_NE(GroupSeed("Wikipedia", 1), GroupSeed("Wikipedia", 0));
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<ReplayJob> Jobs() {
  return {MadeClusterJob("resnet50", Seconds(100)), MadeClusterJob("neumf", Seconds(1)),
          MadeClusterJob("bert_qa", Seconds(10))};
}

std::vector<ContenderSpec> Contenders() {
  return {{.name = "default"},
          {.name = "grid"},
          {.name = "zeus"},
          {.name = "knowledge_gradient"},
          {.name = "knowledge_gradient_prior"}};
}

ClusterTrace Trace() {
  return GenerateCluster({.jobs = 3000, .groups = 40}, ByDefaultRuntime(Jobs()));
}

auto Numbers(const ClusterTotals& totals) {
  const Usage& usage = totals.usage;
  return std::tuple(totals.jobs, totals.runs, totals.concurrent, totals.ratios, usage.time.count(),
                    usage.energy.value(), usage.cost.value());
}

TEST(ClusterReplayTest, AnyNumberOfThreadsGivesTheSameBits) {
  const ClusterTrace trace = Trace();
  const auto jobs = Jobs();
  const auto with = [&](int threads) {
    return ReplayCluster(trace, jobs, {.contenders = Contenders(), .threads = threads}).value();
  };
  const auto alone = with(1);
  for (const int threads : {2, 8}) {
    const auto together = with(threads);
    ASSERT_EQ(together.size(), alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i)
      for (std::size_t c = 0; c < Contenders().size(); ++c)
        EXPECT_EQ(Numbers(together[i].contenders[c]), Numbers(alone[i].contenders[c]));
  }
}

TEST(ClusterReplayTest, NoJobIsLostOrCountedTwice) {
  const ClusterTrace trace = Trace();
  std::atomic<std::int64_t> done{0};
  const auto totals = ReplayCluster(trace, Jobs(),
                                    {.contenders = Contenders(),
                                     .threads = 2,
                                     .jobs_done = [&done](std::int64_t jobs) { done += jobs; }})
                          .value();
  for (std::size_t c = 0; c < Contenders().size(); ++c) {
    std::int64_t jobs = 0;
    for (const WorkloadTotals& workload : totals) jobs += workload.contenders[c].jobs;
    EXPECT_EQ(jobs, 3000);
  }
  EXPECT_EQ(done, 5 * 3000);
}

// Groups of three jobs each, one after the other; the groups begin so far apart.
ClusterTrace ShortGroups(int groups, Seconds apart) {
  ClusterTraceBuilder builder;
  for (int i = 0; i < groups; ++i) {
    const std::size_t group = builder.Group("group " + std::to_string(i), "neumf");
    for (int job = 0; job < 3; ++job) {
      const Seconds start = i * apart + Seconds(20 * job);
      builder.Add(group, {.start = start, .end = start + Seconds(10)});
    }
  }
  return std::move(builder).Finish();
}

TEST(ClusterReplayTest, GroupsLearnFromGroupsThatHaveEnded) {
  const auto jobs = Jobs();
  const auto cost = [&](const char* contender, Seconds apart) {
    const auto totals =
        ReplayCluster(ShortGroups(50, apart), jobs, {.contenders = {{.name = contender}}}).value();
    Joules sum{};
    for (const WorkloadTotals& workload : totals) sum += workload.contenders[0].usage.cost;
    return sum;
  };
  EXPECT_LT(cost("knowledge_gradient_prior", Seconds(100)),
            0.9 * cost("knowledge_gradient", Seconds(100)))
      << "the default is the worst batch size, and only the first group has to begin with it";
  EXPECT_EQ(cost("knowledge_gradient_prior", Seconds(0)), cost("knowledge_gradient", Seconds(0)))
      << "nothing is known before the first run has ended";
}

TEST(ClusterReplayTest, AnotherReplayDrawsOtherRuns) {
  const ClusterTrace trace = Trace();
  const auto cost = [&](std::uint64_t replay) {
    return ReplayCluster(trace, Jobs(), {.contenders = {{.name = "zeus"}}, .replay = replay})
        .value()[0]
        .contenders[0]
        .usage.cost;
  };
  EXPECT_NE(cost(0), cost(1));
  EXPECT_EQ(cost(1), cost(1));
}

TEST(ClusterReplayTest, AWorkloadThatWasNeverRecordedIsNamed) {
  ClusterTraceBuilder builder;
  builder.Add(builder.Group("g", "shufflenet"), {.end = Seconds(1)});
  const auto totals =
      ReplayCluster(std::move(builder).Finish(), Jobs(), {.contenders = Contenders()});
  EXPECT_EQ(totals.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(totals.error().message, HasSubstr("\"shufflenet\""));
}

TEST(ClusterReplayTest, WorkloadsAreOrderedByTheTimeTheyTakeByDefault) {
  EXPECT_THAT(ByDefaultRuntime(Jobs()), ElementsAre("neumf", "bert_qa", "resnet50"));
}

}  // namespace cluster_replay_test
}  // namespace zeus::replay
