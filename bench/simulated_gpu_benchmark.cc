// Measures what a simulated GPU costs: a simulated week as a whole, and its parts.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "zeus/base/clock.h"
#include "zeus/base/random.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus::sim {
namespace {

using namespace zeus::literals;
using namespace std::chrono_literals;

void SimulatedWeekWithAMillionLoadChanges(benchmark::State& state) {
  constexpr int kChanges = 1'000'000;
  for (auto _ : state) {
    VirtualClock clock;
    SimulatedGpu gpu(clock, testing::Model("A100"));
    Random random(1);
    std::uint32_t load = 0;
    for (int i = 0; i < kChanges; ++i) {
      gpu.DetachLoad(load);
      load = gpu.AttachLoad(testing::Draw(Watts(random.Uniform(0.0, 500.0)))).value();
      clock.Advance(Seconds(24h * 7) / kChanges);
    }
    benchmark::DoNotOptimize(gpu.ExactEnergy());
  }
}
BENCHMARK(SimulatedWeekWithAMillionLoadChanges)->Unit(benchmark::kMillisecond);

void WorkloadChange(benchmark::State& state) {
  GpuCore core(testing::Model("A100"), 1, 0);
  const LoadSpec load = testing::Train("resnet50", 256);
  for (auto _ : state) {
    const std::uint32_t id = core.AttachLoad(load).value();
    core.AdvanceTo(core.now() + 1s);
    core.DetachLoad(id);
  }
}
BENCHMARK(WorkloadChange);

void ReadEverything(benchmark::State& state) {
  VirtualClock clock;
  SimulatedGpu gpu(clock, testing::Model("H100"));
  if (!gpu.AttachLoad(testing::Train("resnet50", 256)).ok()) state.SkipWithError("no load");
  for (auto _ : state) {
    clock.Advance(1ms);
    benchmark::DoNotOptimize(gpu.Read());
  }
}
BENCHMARK(ReadEverything);

void CopyCore(benchmark::State& state) {
  const GpuCore core(testing::Model("H100"), 1, 0);
  for (auto _ : state) {
    GpuCore copy = core;
    benchmark::DoNotOptimize(copy);
  }
  state.counters["bytes"] = sizeof(GpuCore);
}
BENCHMARK(CopyCore);

}  // namespace
}  // namespace zeus::sim
