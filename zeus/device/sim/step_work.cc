#include "zeus/device/sim/step_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "zeus/device/sim/gpu_model.h"

namespace zeus::sim {
namespace {

// Shares of the published peaks that well-tuned kernels reach.
constexpr double kAchievedArithmetic = 0.5;
constexpr double kAchievedBandwidth = 0.8;

// Power above idle while the GPU waits for its memory, as a share of that while it computes.
constexpr double kMemoryActivity = 0.6;

bool IsAmount(double value) { return std::isfinite(value) && value >= 0.0; }

Status CheckWork(const StepWork& work) {
  if (IsAmount(work.operations) && IsAmount(work.bytes) && work.operations + work.bytes > 0.0)
    return Ok();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("a step must have operations or bytes, not {:g} operations and {:g} "
                           "bytes",
                           work.operations, work.bytes)};
}

}  // namespace

Result<OperatingPoint> PredictStep(const GpuModel& model, const StepWork& work,
                                   const KnobSettings& knobs) {
  ZEUS_RETURN_IF_ERROR(CheckWork(work));
  ZEUS_RETURN_IF_ERROR(CheckKnobs(model, knobs));
  const double arithmetic = work.operations / (model.peak_operations * kAchievedArithmetic);
  const double memory = work.bytes / (model.memory_bandwidth * kAchievedBandwidth);

  const double activity = (arithmetic + kMemoryActivity * memory) / (arithmetic + memory);
  const Watts full = (model.limit_range.max - model.idle_power) * activity;
  const Watts allowed = knobs.power_limit - model.idle_power;
  const Hertz cap =
      std::min(knobs.clock_cap.value_or(model.graphics_clock.max), model.graphics_clock.max);
  const Hertz clock =
      std::min(HighestClockWithin(model, allowed / full), SupportedClockBelow(model, cap));
  const Watts active = full * PowerShareAt(model, clock);

  // Where even the lowest clock draws too much, part of its pulses are left out.
  const double pulses = std::min(1.0, allowed / active);
  const double stretch = model.graphics_clock.max / clock / pulses;
  return OperatingPoint{.time_per_epoch = Seconds(memory + arithmetic * stretch),
                        .average_power = model.idle_power + active * pulses,
                        .graphics_clock = clock,
                        .utilization = 1.0};
}

}  // namespace zeus::sim
