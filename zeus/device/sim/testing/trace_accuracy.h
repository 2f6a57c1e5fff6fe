#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/workload.h"

// How well the workload catalogue agrees with the traces of the Zeus paper (NSDI'23), which do not
// ship with the product. Used by the test of the catalogue and by the benchmark that prints the
// table in docs/workload-catalogue.md.
namespace zeus::sim::testing {

// One row of summary_power_<gpu>.csv.
struct PowerRecord {
  const GpuModel* model;
  const Workload* workload;
  unsigned batch_size;
  Watts power_limit;
  Seconds time_per_epoch;
  Watts average_power;
};

// Epochs to the target that runs of summary_train.csv took, by batch size; only batch sizes with
// which every run reached it.
using RecordedEpochs = std::map<unsigned, std::vector<double>>;

struct Traces {
  std::vector<PowerRecord> power;
  std::map<std::string_view, RecordedEpochs> epochs;  // By name of the workload.
};

// From the environment variable ZEUS_TRACE_DIR, else beside the repository.
std::filesystem::path DefaultTraceDirectory();

Result<Traces> ReadTraces(const std::filesystem::path& directory);

// Relative errors of Predict(), one per record, and how much more the batch size and power limit
// that look cheapest to the catalogue (eta = 0.5) cost in the trace than the cheapest of the
// trace, one per GPU and workload.
struct Accuracy {
  std::vector<double> time_errors;
  std::vector<double> power_errors;
  std::vector<double> choice_losses;
};

// By id of the GPU model.
Result<std::map<std::string_view, Accuracy>> Measure(const Traces& traces);

Accuracy Pool(const std::map<std::string_view, Accuracy>& accuracies);

double Mean(const std::vector<double>& values);

// `share` of the values are below it. Interpolates between neighbours.
double Quantile(std::vector<double> values, double share);

}  // namespace zeus::sim::testing
