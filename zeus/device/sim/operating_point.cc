#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "zeus/device/sim/workload.h"
#include "zeus/device/sim/workload_data.h"

namespace zeus::sim {
namespace {

// Published dense FP16 tensor throughput and memory bandwidth (data sheets named in gpu_model.cc).
struct Throughput {
  double teraflops;
  double gigabytes_per_second;
};

constexpr Throughput kV100 = {.teraflops = 112, .gigabytes_per_second = 900};
constexpr Throughput kA40 = {.teraflops = 149.7, .gigabytes_per_second = 696};
constexpr Throughput kA100 = {.teraflops = 312, .gigabytes_per_second = 1555};
constexpr Throughput kH100 = {.teraflops = 989, .gigabytes_per_second = 3350};
constexpr Throughput kL40s = {.teraflops = 362, .gigabytes_per_second = 864};

// Which recorded GPU a model's behaviour comes from. A recorded GPU is its own origin.
struct Origin {
  std::string_view model;
  RecordedGpu recorded;
  std::string_view recorded_model;
  // How many times faster than the recorded GPU. Training is bound partly by arithmetic, partly by
  // memory: the geometric mean of both published ratios.
  double speed;
};

Origin Derived(std::string_view model, const Throughput& own, RecordedGpu recorded,
               std::string_view recorded_model, const Throughput& base) {
  return {.model = model,
          .recorded = recorded,
          .recorded_model = recorded_model,
          .speed = std::sqrt(own.teraflops / base.teraflops * own.gigabytes_per_second /
                             base.gigabytes_per_second)};
}

// DERIVED, NOT RECORDED: the last three. The nearest recorded part is the one with the same kind of
// memory and board.
const std::array<Origin, 7> kOrigins = {{
    {"V100", RecordedGpu::kV100, "V100", 1.0},
    {"A40", RecordedGpu::kA40, "A40", 1.0},
    {"RTX6000", RecordedGpu::kRtx6000, "RTX6000", 1.0},
    {"P100", RecordedGpu::kP100, "P100", 1.0},
    Derived("A100", kA100, RecordedGpu::kV100, "V100", kV100),
    Derived("H100", kH100, RecordedGpu::kV100, "V100", kV100),
    Derived("L40S", kL40s, RecordedGpu::kA40, "A40", kA40),
}};

// At the lowest clock some loads still draw more than the lowest limit: the recorded A40 averages
// up to 121 W under 100 W. Beyond this excess, pulse skipping keeps the power down.
constexpr double kLargestExcess = 1.21;

// What a workload does when nothing holds the clock back.
struct FullClock {
  double time;
  double gap;           // The part of `time` in which the GPU waits for its next work.
  double clock_share;   // The part of `time` that stretches when the clock falls, 0 to 1.
  double active_power;  // Above idle.
};

FullClock AtFullClock(const OperatingFit& fit, double speed, double power_scale, double batch) {
  // A GPU that is k times faster is as busy with k times the batch. The overhead of a step is the
  // host's and stays.
  const double load = batch / speed;
  const double busy = fit.saturated_time / speed;
  const double stretched =
      std::pow(std::pow(fit.step_overhead / batch, fit.sharpness) + std::pow(busy, fit.sharpness),
               1.0 / fit.sharpness);
  const double batch_power = fit.batch_power * std::pow(load, -fit.power_decline) /
                             (1.0 + std::pow(fit.power_batch / load, fit.power_slope));
  return {
      .time = stretched + fit.growth * load,
      .gap = stretched - busy,
      .clock_share = fit.clock_share / (1.0 + std::pow(fit.share_batch / load, fit.share_slope)),
      .active_power = (fit.floor_power + batch_power) * power_scale};
}

// Dynamic power at a clock, both as shares of those at full clock: frequency times voltage squared,
// where the square of the voltage falls from 1 to 1 - slope.
double DynamicShare(double clock, double slope) {
  return clock * (1.0 - slope + slope * clock * clock);
}

// The inverse: the one real root of a cubic, in closed form.
double ClockFor(double dynamic_share, double slope) {
  const double scale = std::sqrt((1.0 - slope) / (3.0 * slope));
  return 2.0 * scale * std::sinh(std::asinh(1.5 * dynamic_share / ((1.0 - slope) * scale)) / 3.0);
}

// The highest clock, as a share, at which the average power keeps to the limit; 0 if there is none.
double ClockUnderLimit(const OperatingFit& fit, const GpuModel& model, double active_power,
                       Watts limit) {
  const double idle = model.idle_power.value();
  const double position =
      (limit - model.limit_range.min) / (model.limit_range.max - model.limit_range.min);
  const double regulated = std::lerp(fit.regulation_low * model.limit_range.min.value(),
                                     fit.regulation_high * model.limit_range.max.value(), position);
  // A smooth minimum: near the limit only the peaks of a step are cut.
  const double unlimited = idle + active_power;
  const double sharpness = fit.regulation_sharpness;
  const double allowed =
      unlimited * std::pow(1.0 + std::pow(unlimited / regulated, sharpness), -1.0 / sharpness);
  const double share = (allowed - idle) / active_power;
  const double dynamic = (share - fit.static_share) / (1.0 - fit.static_share);
  return ClockFor(std::max(dynamic, 0.0), fit.voltage_slope);
}

// The supported clock that a reader sees: the highest one not above the average.
Hertz OnGrid(const GpuModel& model, double clock) {
  const Hertz frequency = model.graphics_clock.max * clock;
  const double steps = (frequency - model.graphics_clock.min) / model.graphics_clock_step;
  return model.graphics_clock.min +
         model.graphics_clock_step * std::max(std::floor(steps + 1e-6), 0.0);
}

Status CheckArguments(const GpuModel& model, unsigned batch_size, const KnobSettings& knobs) {
  if (batch_size == 0) return Error{ErrorCode::kInvalidArgument, "batch size must be at least 1"};
  const PowerRange& range = model.limit_range;
  if (!(knobs.power_limit >= range.min && knobs.power_limit <= range.max))
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("power limit {:g} W is outside what a {} accepts ({:g} W to {:g} W)",
                    knobs.power_limit.value(), model.id, range.min.value(), range.max.value())};
  if (knobs.clock_cap && !(*knobs.clock_cap >= model.graphics_clock.min))
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("graphics clock {:g} MHz is below the lowest of a {} ({:g} MHz)",
                    knobs.clock_cap->ToMega(), model.id, model.graphics_clock.min.ToMega())};
  return Ok();
}

Result<const Origin*> FindOrigin(const GpuModel& model) {
  const auto* const found = std::ranges::find(kOrigins, model.id, &Origin::model);
  if (found != kOrigins.end()) return found;
  return Error{ErrorCode::kNotSupported,
               fmt::format("the workload catalogue has no data for GPU model \"{}\"", model.id)};
}

// Above idle, a workload takes the same share of what the board may draw as on the recorded GPU.
double PowerScale(const GpuModel& model, const Origin& origin) {
  if (origin.recorded_model == model.id) return 1.0;
  const auto models = GpuModels();
  const auto recorded = std::ranges::find(models, origin.recorded_model, &GpuModel::id);
  return (model.limit_range.max - model.idle_power) /
         (recorded->limit_range.max - recorded->idle_power);
}

}  // namespace

Result<OperatingPoint> Predict(const GpuModel& model, const Workload& workload, unsigned batch_size,
                               const KnobSettings& knobs) {
  ZEUS_RETURN_IF_ERROR(CheckArguments(model, batch_size, knobs));
  ZEUS_TRY(const Origin* const origin, FindOrigin(model));
  const OperatingFit& fit = workload.fits->operating.at(static_cast<std::size_t>(origin->recorded));
  const FullClock full =
      AtFullClock(fit, origin->speed, PowerScale(model, *origin), static_cast<double>(batch_size));

  const double lowest = model.graphics_clock.min / model.graphics_clock.max;
  const double cap = knobs.clock_cap ? *knobs.clock_cap / model.graphics_clock.max : 1.0;
  const double clock = std::clamp(ClockUnderLimit(fit, model, full.active_power, knobs.power_limit),
                                  lowest, std::min(cap, 1.0));
  const double active =
      full.active_power *
      (fit.static_share + (1.0 - fit.static_share) * DynamicShare(clock, fit.voltage_slope));

  // Pulse skipping leaves out part of the pulses of the lowest clock.
  const double headroom = knobs.power_limit.value() * kLargestExcess - model.idle_power.value();
  const double pulses = std::min(1.0, headroom / active);
  const double computing = full.clock_share / (clock * pulses);
  const double stretch = 1.0 - full.clock_share + computing;
  const double time = full.time * stretch;

  // What depends on the clock computes, and so does all but the gap. Where power says that it must
  // be more, power is right: while computing the GPU stays below its limit.
  const double room = (knobs.power_limit - model.idle_power).value();
  const double utilization =
      std::max({1.0 - full.gap / time, computing / stretch, active * pulses / room});
  return OperatingPoint{.time_per_epoch = Seconds(time),
                        .average_power = model.idle_power + Watts(active * pulses),
                        .graphics_clock = OnGrid(model, clock),
                        .utilization = std::min(utilization, 1.0)};
}

}  // namespace zeus::sim
