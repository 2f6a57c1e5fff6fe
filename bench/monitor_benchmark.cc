// Measures what monitoring costs the measured program: windows on its hot path, and the recorder
// thread. The GPUs are eight simulated A100s behind NVML's C ABI, unless ZEUS_NVML_LIBRARY names
// another library.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/testing/places.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<NodeMonitor> OpenMonitor(SystemClock& clock, bool thread) {
  ::setenv("ZEUS_NVML_LIBRARY", zeus::testing::SimulatedDriver().c_str(), 0);
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

// Training opens windows at this rate; tens of thousands per second are rare.
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

// Measures the driver's share of it: both edges read every GPU's counter.
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

// A counter of 300 W that costs nothing to read, so that only the recorder's own share remains.
class FreeMeter final : public EnergyMeter {
 public:
  FreeMeter(Clock& clock, std::string name) : clock_(clock), name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  Result<EnergyReading> Energy() override {
    const double updates = std::floor(clock_.Now().time_since_epoch() / 100ms);
    return EnergyReading{.total = Joules(30 * updates), .epoch = 0, .taken_at = std::nullopt};
  }
  Result<Watts> Power() override { return Watts(300); }

 private:
  Clock& clock_;
  const std::string name_;
};

// Measures the percentage of one core that this process uses while only a background thread runs.
void MeasureIdleShare(benchmark::State& state, Clock& clock) {
  clock.SleepFor(10s);  // The recorder learns the phases of the sensors meanwhile.
  const Seconds watch = Seconds(static_cast<double>(state.range(0)));
  double share = 0;
  for (auto _ : state) {
    const double before = CpuSeconds();
    clock.SleepFor(watch);
    share = (CpuSeconds() - before) / watch.count();
  }
  state.counters["percent_of_core"] = 100 * share;
}

void BM_RecorderOfEightGpus(benchmark::State& state) {
  SystemClock clock;
  const auto node = OpenMonitor(clock, true);
  MeasureIdleShare(state, clock);
}
BENCHMARK(BM_RecorderOfEightGpus)->Arg(60)->Iterations(1)->Unit(benchmark::kSecond);

void BM_RecorderOfEightFreeMeters(benchmark::State& state) {
  SystemClock clock;
  std::vector<std::unique_ptr<FreeMeter>> meters;
  std::vector<MonitoredDevice> devices;
  for (int i = 0; i < 8; ++i) {
    meters.push_back(std::make_unique<FreeMeter>(clock, fmt::format("gpu:{}", i)));
    devices.push_back({.meter = meters.back().get()});
  }
  EnergyMonitor monitor(clock, std::move(devices));
  const Ticker ticker("zeus-recorder", [&] { return monitor.Step(); });
  MeasureIdleShare(state, clock);
}
BENCHMARK(BM_RecorderOfEightFreeMeters)->Arg(60)->Iterations(1)->Unit(benchmark::kSecond);

// Measures what the machine charges for waking a thread as often without any work.
void BM_ThreadThatOnlyWakes(benchmark::State& state) {
  SystemClock clock;
  const Ticker ticker("zeus-recorder", [&] { return clock.Now() + 90ms; });
  MeasureIdleShare(state, clock);
}
BENCHMARK(BM_ThreadThatOnlyWakes)->Arg(60)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace zeus
