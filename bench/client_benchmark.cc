// The time that an epoch of a training waits for its reports: BatchSizeClient::OnEvaluate() with a
// service in this process, and with a server that accepts requests and never answers. The counters
// are microseconds of single epochs; docs/performance.md has the figures.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/testing/scoped_variable.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/client/batch_size_client.h"
#include "zeus/client/testing/hanging_server.h"
#include "zeus/job/local_job_service.h"
#include "zeus/job/memory_repository.h"
#include "zeus/training/testing/simulated_node.h"

namespace {

using namespace zeus;

JobSpec EndlessJob() {
  JobSpec spec{.id = "job", .batch_sizes = {1024}, .default_batch_size = 1024};
  spec.policy = "default";
  spec.beta.reset();
  spec.max_epochs = 100'000'000;
  return spec;
}

void TrainEpochs(benchmark::State& state, JobService& service) {
  zeus::testing::SimulatedNode node({"V100"}, {});
  SystemClock clock;
  const auto client = BatchSizeClient::Begin(&service, node.monitor(),
                                             {.job = EndlessJob(), .end_timeout = Seconds(0.01)})
                          .value();
  client->OnTrainBegin();
  std::vector<double> times;
  for ([[maybe_unused]] const auto epoch : state) {
    node.Step();
    const TimePoint begun = clock.Now();
    client->OnEvaluate(0.0);
    const Seconds time = clock.Now() - begun;
    state.SetIterationTime(time.count());
    times.push_back(time.count() * 1e6);
  }
  std::ranges::sort(times);
  state.counters["p50_us"] = times[times.size() / 2];
  state.counters["p99_us"] = times[times.size() * 99 / 100];
  state.counters["max_us"] = times.back();
}

void EpochWithAServiceThatAnswers(benchmark::State& state) {
  const zeus::testing::TemporaryDirectory folder;
  const zeus::testing::ScopedVariable data("XDG_DATA_HOME", folder.path());
  SystemClock clock;
  MemoryRepository repository;
  LocalJobService service(repository, clock);
  TrainEpochs(state, service);
}
BENCHMARK(EpochWithAServiceThatAnswers)->UseManualTime()->Iterations(2000);

void EpochWithAServerThatHangs(benchmark::State& state) {
  const zeus::testing::TemporaryDirectory folder;
  const zeus::testing::ScopedVariable data("XDG_DATA_HOME", folder.path());
  SystemClock clock;
  MemoryRepository repository;
  LocalJobService service(repository, clock);
  zeus::testing::HangingJobService hanging(service);
  TrainEpochs(state, hanging);
}
BENCHMARK(EpochWithAServerThatHangs)->UseManualTime()->Iterations(2000);

}  // namespace
