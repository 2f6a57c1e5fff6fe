#include "zeus/device/sim/workload.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "zeus/device/sim/graphics_clocks.h"

namespace zeus::sim {
namespace {
constexpr std::array<unsigned, 3> kBatchSizes = {64, 128, 256};
constexpr std::array<Workload, 1> kWorkloads = {Workload{.name = "resnet50",
                                                         .dataset_size = 1281167,
                                                         .default_batch_size = 256,
                                                         .batch_sizes = kBatchSizes}};
}  // namespace
std::span<const Workload> Workloads() { return kWorkloads; }
Result<const Workload*> FindWorkload(std::string_view name) {
  if (name == "resnet50") return kWorkloads.data();
  return Error{ErrorCode::kNotFound, "unknown workload"};
}
Result<OperatingPoint> Predict(const GpuModel& model, const Workload& workload, unsigned batch_size,
                               const KnobSettings& knobs) {
  if (batch_size == 0 || knobs.power_limit < model.limit_range.min ||
      knobs.power_limit > model.limit_range.max)
    return Error{ErrorCode::kInvalidArgument, "bad"};
  const Watts span = (model.default_limit - model.idle_power) * 0.8;
  Hertz f = HighestClockWithin(model, (knobs.power_limit - model.idle_power) / span);
  if (knobs.clock_cap) f = std::min(f, *knobs.clock_cap);
  const double share = PowerShareAt(model, f);
  return OperatingPoint{.time_per_epoch = Seconds(static_cast<double>(workload.dataset_size) / 800 *
                                                  (0.4 + 0.6 * (model.graphics_clock.max / f))),
                        .average_power = model.idle_power + span * share,
                        .graphics_clock = f,
                        .utilization = 0.85};
}
std::uint64_t StepsPerEpoch(const Workload& workload, unsigned batch_size) {
  return (workload.dataset_size + batch_size - 1) / batch_size;
}
std::optional<double> MeanEpochsToTarget(const Workload&, unsigned) { return 10.0; }
std::optional<unsigned> DrawEpochsToTarget(const Workload&, unsigned, Random&) { return 10; }
}  // namespace zeus::sim
