// What measuring costs the program that is measured: windows on the hot path, and the recorder.
// Eight simulated A100 behind NVML's C ABI, unless ZEUS_NVML_LIBRARY names another library.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<NodeMonitor> OpenMonitor(SystemClock& clock, bool thread) {
  ::setenv("ZEUS_NVML_LIBRARY", ZEUS_NVML_SIMULATOR, 0);
  ::setenv("ZEUS_SIM", "8xA100", 0);
  Node node = Discover(RealSurroundings(clock)).value();
  return NodeMonitor::Open(clock, std::move(node), {.cpus = false, .thread = thread}).value();
}

void BM_BeginAndEndAWindow(benchmark::State& state) {
  SystemClock clock;
  const auto node = OpenMonitor(clock, true);
  clock.SleepFor(500ms);
  EnergyMonitor& monitor = node->monitor();
  for (auto _ : state) {
    benchmark::DoNotOptimize(monitor.BeginWindow("step"));
    benchmark::DoNotOptimize(monitor.EndWindow("step"));
  }
  state.counters["GPUs"] = static_cast<double>(monitor.device_count());
}
BENCHMARK(BM_BeginAndEndAWindow);

// As in training: tens of thousands of windows per second are not the rule.
void BM_BeginAndEndAWindowWithinAnother(benchmark::State& state) {
  SystemClock clock;
  const auto node = OpenMonitor(clock, true);
  EnergyMonitor& monitor = node->monitor();
  (void)monitor.BeginWindow("epoch");
  clock.SleepFor(500ms);
  for (auto _ : state) {
    benchmark::DoNotOptimize(monitor.BeginWindow("step"));
    benchmark::DoNotOptimize(monitor.EndWindow("step"));
  }
}
BENCHMARK(BM_BeginAndEndAWindowWithinAnother)->Iterations(10000);

void BM_SynchronousWindow(benchmark::State& state) {
  SystemClock clock;
  const auto node = OpenMonitor(clock, false);
  EnergyMonitor& monitor = node->monitor();
  for (auto _ : state) {
    benchmark::DoNotOptimize(monitor.BeginWindow("step", {.edges = EdgeReading::kSynchronous}));
    benchmark::DoNotOptimize(monitor.EndWindow("step"));
  }
}
BENCHMARK(BM_SynchronousWindow);

// The driver's part of it: both edges read every GPU's counter.
void BM_DriverReadsOfASynchronousWindow(benchmark::State& state) {
  SystemClock clock;
  const auto node = OpenMonitor(clock, false);
  for (auto _ : state)
    for (int edge = 0; edge < 2; ++edge)
      for (const auto& gpu : node->node().gpus) benchmark::DoNotOptimize(gpu->Energy());
}
BENCHMARK(BM_DriverReadsOfASynchronousWindow);

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// Percent of one core that the recorder takes; the process does nothing else meanwhile.
void BM_RecorderShareOfOneCore(benchmark::State& state) {
  SystemClock clock;
  const auto node = OpenMonitor(clock, true);
  clock.SleepFor(2s);
  const Seconds watch = Seconds(static_cast<double>(state.range(0)));
  double share = 0;
  for (auto _ : state) {
    const double before = CpuSeconds();
    clock.SleepFor(watch);
    share = (CpuSeconds() - before) / watch.count();
  }
  state.counters["percent_of_core"] = 100 * share;
}
BENCHMARK(BM_RecorderShareOfOneCore)->Arg(60)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace zeus
