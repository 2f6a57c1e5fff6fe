#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "zeus/base/random.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/sim/gpu_model.h"

namespace zeus::sim {

struct WorkloadFits;

// A training job of the catalogue: how long an epoch takes and how much power it draws on each GPU
// model, and how many epochs it needs to its target, as functions of batch size and knobs. Fitted
// to the traces of the Zeus paper by tools/fit_workloads.py; docs/workload-catalogue.md states the
// model, its error, and what is derived rather than recorded (A100, H100, L40S).
//
// The catalogue is constant: everything here may be called from any thread.
struct Workload {
  std::string_view name;  // "deepspeech2"
  std::uint64_t dataset_size;
  unsigned default_batch_size;
  std::span<const unsigned> batch_sizes;  // Those recorded on any GPU, ascending.
  const WorkloadFits* fits;               // Coefficients, from workload_data.h.
};

std::span<const Workload> Workloads();

// kNotFound lists the known names.
Result<const Workload*> FindWorkload(std::string_view name);

struct KnobSettings {
  Watts power_limit;
  std::optional<Hertz> clock_cap;  // A locked graphics clock.
};

// kInvalidArgument when the limit is outside the model's range or the cap below its lowest clock.
Status CheckKnobs(const GpuModel& model, const KnobSettings& knobs);

// How a GPU runs a workload under given knobs.
struct OperatingPoint {
  Seconds time_per_epoch;
  Watts average_power;
  Hertz graphics_clock;
  double utilization;  // Share of a step that computes, 0 to 1; the rest waits for input.
};

// The steady state. Any batch size: between and beyond the recorded ones the laws of the model
// hold. A lower limit or clock cap never shortens an epoch and never raises its power. The average
// may exceed a limit that even the lowest clock cannot keep, by up to a fifth, as recorded (A40,
// 100 W). kInvalidArgument when the batch size is zero, the limit outside the model's range or the
// clock cap below its lowest clock; kNotSupported for a model that is not in GpuModels(). Does not
// allocate unless it fails.
Result<OperatingPoint> Predict(const GpuModel& model, const Workload& workload, unsigned batch_size,
                               const KnobSettings& knobs);

// The last step may be a small one. Zero for batch size zero.
std::uint64_t StepsPerEpoch(const Workload& workload, unsigned batch_size);

// Mean over the runs that reach the target; nullopt when no run with this batch size does.
std::optional<double> MeanEpochsToTarget(const Workload& workload, unsigned batch_size);

// Draws one run; nullopt when it never reaches the target, which happens as often as in the
// recorded runs.
std::optional<unsigned> DrawEpochsToTarget(const Workload& workload, unsigned batch_size,
                                           Random& random);

}  // namespace zeus::sim
