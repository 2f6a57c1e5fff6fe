#include "zeus/inference/benchmark/benchmark.h"

#include <algorithm>

namespace zeus::inference {
namespace {

// So many failures, and no success, end a load: the rest would fail as well.
constexpr std::size_t kHopelessFailures = 32;

}  // namespace

BenchmarkRun RunBenchmark(const BenchmarkParts& parts, const BenchmarkOptions& options,
                          const LoadGenerator::Continue& keep_going) {
  BenchmarkRun run{.started = parts.clock.WallNow()};
  Workload workload(options.workload);
  LoadGenerator generator(parts.clock, parts.transport, workload, options.load);
  if (parts.meter != nullptr) parts.meter->Begin();
  run.record = generator.Run([&](const LoadProgress& progress) {
    if (progress.finished == 0 && progress.failed >= kHopelessFailures) return false;
    return keep_going(progress);
  });
  if (parts.meter != nullptr) run.gpus.whole = parts.meter->End();
  if (parts.energies != nullptr)
    FetchFinalEnergies(run.record, *parts.energies, parts.clock, options.final_energy_timeout);

  const SteadyWindow whole{run.record.begin, run.record.end};
  const auto steady = FindSteadyWindow(run.record, SaturationOf(run.record, options.summary));
  if (parts.meter != nullptr) {
    if (steady.ok()) run.gpus.steady = parts.meter->Between(steady.value());
    run.gpus.clock = parts.meter->MeanClock(steady.ok() ? steady.value() : whole);
    run.power = parts.meter->Power(whole);
  }
  run.summary = SummarizeRun(run.record, options.summary, run.gpus);
  return run;
}

}  // namespace zeus::inference
