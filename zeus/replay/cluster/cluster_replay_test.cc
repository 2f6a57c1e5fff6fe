#include "zeus/replay/cluster/cluster_replay.h"

#include <gmock/gmock.h>

#include <atomic>
#include <tuple>

#include "zeus/replay/cluster/generator.h"
#include "zeus/replay/cluster/testing/made_jobs.h"

namespace zeus::replay {
namespace cluster_replay_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MadeClusterJob;

std::vector<ReplayJob> Jobs() {
  return {MadeClusterJob("resnet50", Seconds(100)), MadeClusterJob("neumf", Seconds(1)),
          MadeClusterJob("bert_qa", Seconds(10))};
}

std::vector<ContenderSpec> Contenders() {
  return {{.name = "default"}, {.name = "grid"}, {.name = "zeus"}, {.name = "knowledge_gradient"}};
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
  EXPECT_EQ(done, 4 * 3000);
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
