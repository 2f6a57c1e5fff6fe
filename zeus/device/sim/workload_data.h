#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace zeus::sim {

// The GPUs on which the workloads were recorded.
enum class RecordedGpu : std::size_t { kV100, kA40, kRtx6000, kP100 };
constexpr std::size_t kRecordedGpus = 4;

// One workload on one recorded GPU. Times are seconds per epoch, powers are watts above idle,
// `b` is the batch size, `x` the clock as a share of the highest one. operating_point.cc holds the
// formulae, docs/workload-catalogue.md explains them.
struct OperatingFit {
  // Time at full clock: ((step_overhead / b)^sharpness + saturated_time^sharpness)^(1/sharpness)
  // + growth * b. The overhead is what every step costs whatever its size (launches, input).
  double step_overhead;
  double saturated_time;
  double growth;
  double sharpness;

  // The share of that time which stretches as 1/x: clock_share / (1 + (share_batch/b)^share_slope).
  double clock_share;
  double share_batch;
  double share_slope;

  // Power at clock x, as a share of that at full clock:
  // static_share + (1 - static_share) * x * (1 - voltage_rise + voltage_rise * x^voltage_bend).
  // The last factor is the square of the voltage.
  double static_share;
  double voltage_rise;
  double voltage_bend;

  // Under a limit the average settles at this part of it (of the lowest, of the highest; linear
  // between), because the regulator has to leave room for peaks. Sharpness: how abruptly.
  double regulation_low;
  double regulation_high;
  double regulation_sharpness;

  // Power at full clock: floor_power
  // + batch_power * b^-power_decline / (1 + (power_batch/b)^power_slope).
  double floor_power;
  double batch_power;
  double power_batch;
  double power_slope;
  double power_decline;
};

// Epochs to the target: N = max(1, round(m * exp(spread * z))), z standard normal, with the median
// m = base * (1 + (b/large_batch)^large_slope) * (1 + (small_batch/b)^small_slope).
struct EpochsFit {
  double base;
  double large_batch;
  double large_slope;
  double small_batch;
  double small_slope;
  double spread;
};

// How many of the recorded runs with a batch size never reached the target, 0 to 1.
struct FailingShare {
  unsigned batch_size;
  double share;
};

struct WorkloadFits {
  EpochsFit epochs;
  std::span<const FailingShare> failing;              // By batch size, ascending.
  std::array<OperatingFit, kRecordedGpus> operating;  // Indexed by RecordedGpu.
};

}  // namespace zeus::sim
