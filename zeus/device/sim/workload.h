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

// A training job of the catalogue: how long an epoch takes and how much power it draws on each GPU
// model, and how many epochs it needs to its target, as functions of batch size and knobs. Fitted
// to the traces of the Zeus paper by tools/fit_workloads.py; the error is in docs/simulated-gpu.md.
struct Workload {
  std::string_view name;  // "deepspeech2"
  std::uint64_t dataset_size;
  unsigned default_batch_size;
  std::span<const unsigned> batch_sizes;  // Those with recorded data, ascending.
};

std::span<const Workload> Workloads();

// kNotFound lists the known names.
Result<const Workload*> FindWorkload(std::string_view name);

struct KnobSettings {
  Watts power_limit;
  std::optional<Hertz> clock_cap;  // A locked graphics clock.
};

// What a GPU does with a workload under given knobs.
struct OperatingPoint {
  Seconds time_per_epoch;
  Watts average_power;
  Hertz graphics_clock;
  double utilization;  // Share of a step that computes, 0 to 1; the rest waits for input.
};

// kInvalidArgument when the batch size is zero or the limit outside the model's range.
Result<OperatingPoint> Predict(const GpuModel& model, const Workload& workload,
                               unsigned batch_size, const KnobSettings& knobs);

std::uint64_t StepsPerEpoch(const Workload& workload, unsigned batch_size);

// nullopt when training with this batch size never reaches the target.
std::optional<double> MeanEpochsToTarget(const Workload& workload, unsigned batch_size);
std::optional<unsigned> DrawEpochsToTarget(const Workload& workload, unsigned batch_size,
                                           Random& random);

}  // namespace zeus::sim
