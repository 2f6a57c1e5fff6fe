// Measures how fast jobs are replayed: recurrences per second for each policy on the jobs of the
// catalogue, and their growth with the number of batch sizes.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "zeus/replay/job_replay.h"
#include "zeus/replay/replay_job.h"

namespace {

using namespace zeus;
using namespace zeus::replay;

std::vector<ReplayJob> PaperJobs() {
  std::vector<ReplayJob> jobs = CatalogueJobs("v100", 0.5).value();
  std::vector<ReplayJob> others = CatalogueJobs("a40", 0.5).value();
  for (ReplayJob& job : others) jobs.push_back(std::move(job));
  return jobs;
}

// Replays as the paper evaluates: 2 |B| |P| recurrences of each of twelve jobs, each with a new
// policy.
void BM_Recurrences(benchmark::State& state, const std::string& name) {
  const std::vector<ReplayJob> jobs = PaperJobs();
  std::int64_t recurrences = 0;
  std::uint64_t seed = 0;
  for (auto _ : state) {
    for (const ReplayJob& job : jobs) {
      JobReplay replay = JobReplay::Make(job, {.name = name}, seed).value();
      for (int t = 0; t < job.recurrences(); ++t)
        benchmark::DoNotOptimize(replay.Next().usage.cost);
      recurrences += job.recurrences();
    }
    ++seed;
  }
  state.SetItemsProcessed(recurrences);
}

// All batch sizes of the job are about equally good, so that none is pruned and all are drawn from.
ReplayJob JobWithArms(int arms) {
  ReplayJob job{.gpu_model = "v100",
                .label = "made",
                .max_epochs = 100,
                .default_batch_size = 8,
                .max_power = Watts(250)};
  for (int i = 0; i < arms; ++i) {
    const Usage epoch{.time = Seconds(100), .energy = Joules(20'000)};
    job.arms.push_back(MakeArm(8 * (i + 1), {9, 10, 11, 12},
                               {{.limit = Watts(250), .power = Watts(200), .epoch = epoch}},
                               job.eta, job.max_power));
  }
  return job;
}

void BM_Arms(benchmark::State& state, const std::string& name) {
  const ReplayJob job = JobWithArms(static_cast<int>(state.range(0)));
  JobReplay replay = JobReplay::Make(job, {.name = name}, 1).value();
  for (int t = 0; t < 4 * state.range(0); ++t) replay.Next();
  for (auto _ : state) benchmark::DoNotOptimize(replay.Next().usage.cost);
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(BM_Recurrences, default, std::string("default"));
BENCHMARK_CAPTURE(BM_Recurrences, grid, std::string("grid"));
BENCHMARK_CAPTURE(BM_Recurrences, zeus, std::string("zeus"));
BENCHMARK_CAPTURE(BM_Recurrences, knowledge_gradient, std::string("knowledge_gradient"));
BENCHMARK_CAPTURE(BM_Arms, zeus, std::string("zeus"))->RangeMultiplier(2)->Range(2, 64);
BENCHMARK_CAPTURE(BM_Arms, knowledge_gradient, std::string("knowledge_gradient"))
    ->RangeMultiplier(2)
    ->Range(2, 64);

}  // namespace
