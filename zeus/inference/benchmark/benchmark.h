#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/inference/benchmark/energy_sources.h"
#include "zeus/inference/benchmark/load_generator.h"
#include "zeus/inference/benchmark/summary.h"
#include "zeus/inference/benchmark/workload.h"

namespace zeus::inference {

struct BenchmarkOptions {
  WorkloadOptions workload{};
  LoadOptions load{};
  SummaryOptions summary{};
  Seconds final_energy_timeout{30};  // To ask the gateway for the final energies.
};

// One execution of a load, and its figures.
struct BenchmarkRun {
  WallTime started{};
  std::string governor{};  // "off" or "on" where modes of a gateway's governor are compared.
  LoadRecord record{};
  GpuEnergies gpus{};
  std::vector<PowerCurve> power{};
  RunSummary summary{};
};

// The parts that a benchmark works with. The optional ones are null where there are none.
struct BenchmarkParts {
  Clock& clock;
  Transport& transport;
  GpuMeter* meter = nullptr;
  RequestEnergySource* energies = nullptr;
};

// Sends the load and measures it. A load whose first requests all fail ends early: see the failures
// in the summary. `keep_going` is that of LoadGenerator::Run().
BenchmarkRun RunBenchmark(const BenchmarkParts& parts, const BenchmarkOptions& options,
                          const LoadGenerator::Continue& keep_going);

}  // namespace zeus::inference
