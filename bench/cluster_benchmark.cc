// Measures how fast traces of clusters are read and their groups replayed.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "zeus/replay/cluster/cluster_replay.h"
#include "zeus/replay/cluster/cluster_trace.h"
#include "zeus/replay/cluster/generator.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay {
namespace {

const std::vector<ReplayJob>& Jobs() {
  static const std::vector<ReplayJob> jobs = CatalogueJobs("v100", 0.5).value();
  return jobs;
}

ClusterTrace Generate(std::int64_t jobs, std::int64_t groups) {
  return GenerateCluster({.jobs = jobs, .groups = groups}, ByDefaultRuntime(Jobs()));
}

// Writes a trace of groups to a temporary file and deletes it at the end.
class TraceFile {
 public:
  explicit TraceFile(std::int64_t jobs)
      : path_(std::filesystem::temp_directory_path() /
              ("zeus-cluster-benchmark-" + std::to_string(::getpid()) + ".csv")) {
    std::ofstream file(path_);
    const Status written = WriteGroupTrace(Generate(jobs, std::max<std::int64_t>(1, jobs / 200)),
                                           [&file](std::string_view part) {
                                             file << part;
                                             return Ok();
                                           });
    written_ = written.ok() && file.flush().good();
  }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  ~TraceFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  bool written() const { return written_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool written_ = false;
};

void ReadGroups(benchmark::State& state) {
  const TraceFile file(state.range(0));
  if (!file.written()) return state.SkipWithError("the trace could not be written");
  for (auto _ : state) {
    RowProblems problems;
    benchmark::DoNotOptimize(ReadGroupTrace(file.path(), problems).value());
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(std::filesystem::file_size(file.path())));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(ReadGroups)->Arg(1000)->Arg(100000)->Arg(1200000)->Unit(benchmark::kMillisecond);

void Generating(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Generate(state.range(0), state.range(0) / 200));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Generating)->Arg(100000)->Unit(benchmark::kMillisecond);

void Replaying(benchmark::State& state, const char* policy) {
  const ClusterTrace trace = Generate(100000, 500);
  for (auto _ : state)
    benchmark::DoNotOptimize(
        ReplayCluster(trace, Jobs(), {.contenders = {{.name = policy}}}).value());
  state.SetItemsProcessed(state.iterations() * 100000);
}
BENCHMARK_CAPTURE(Replaying, default, "default")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Replaying, grid, "grid")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Replaying, zeus, "zeus")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Replaying, knowledge_gradient, "knowledge_gradient")
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace zeus::replay
