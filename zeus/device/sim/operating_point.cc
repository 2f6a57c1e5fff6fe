// The catalogue has a fit for each workload on each recorded GPU: the time of a step and the power
// at full clock as functions of the batch size, and how dynamic power falls with the clock.
// Predict() finds the highest clock at which the average power keeps to the limit, by inverting
// that function, and derives time and power from it. Models that were not recorded are scaled from
// the recorded one that is nearest to them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/workload.h"
#include "zeus/device/sim/workload_data.h"

namespace zeus::sim {
namespace {

// Which recorded GPU a model's behaviour comes from.
struct Origin {
  std::string_view model;
  RecordedGpu recorded;
  // For a model that was not recorded: the recorded one nearest to it, with the same kind of memory
  // and board.
  std::optional<std::string_view> derived_from;
};

constexpr std::array<Origin, 7> kOrigins = {{
    {"V100", RecordedGpu::kV100, std::nullopt},
    {"A40", RecordedGpu::kA40, std::nullopt},
    {"RTX6000", RecordedGpu::kRtx6000, std::nullopt},
    {"P100", RecordedGpu::kP100, std::nullopt},
    // The behaviour of these models is derived, not recorded.
    {"A100", RecordedGpu::kV100, "V100"},
    {"H100", RecordedGpu::kV100, "V100"},
    {"L40S", RecordedGpu::kA40, "A40"},
}};

// How a model compares with the recorded GPU that its behaviour comes from.
struct Scale {
  double speed = 1.0;
  double power = 1.0;  // Ratio of the power above idle.
};

Scale MakeScale(const GpuModel& model, const Origin& origin) {
  if (!origin.derived_from) return {};
  const auto models = GpuModels();
  const GpuModel& recorded = *std::ranges::find(models, *origin.derived_from, &GpuModel::id);
  // Training is bound partly by arithmetic, partly by memory: the geometric mean of both ratios.
  // Above idle, a workload takes the same share of what the board may draw.
  return {.speed = std::sqrt(model.peak_operations / recorded.peak_operations *
                             model.memory_bandwidth / recorded.memory_bandwidth),
          .power = (model.limit_range.max - model.idle_power) /
                   (recorded.limit_range.max - recorded.idle_power)};
}

// At the lowest clock some loads still draw more than the lowest limit: the recorded A40 averages
// up to 121 W under 100 W. Beyond this excess, pulse skipping keeps the power down.
constexpr double kLargestExcess = 1.21;

// How a workload runs when nothing holds the clock back.
struct FullClock {
  double time;
  double gap;           // The part of `time` in which the GPU waits for its next work.
  double clock_share;   // The part of `time` that stretches when the clock falls, 0 to 1.
  double active_power;  // Watts above idle while computing.
};

FullClock AtFullClock(const OperatingFit& fit, const Scale& scale, double batch) {
  // A GPU that is k times faster is as busy with k times the batch. The overhead of a step is the
  // host's and stays.
  const double load = batch / scale.speed;
  const double busy = fit.saturated_time / scale.speed;
  const double stretched =
      std::pow(std::pow(fit.step_overhead / batch, fit.sharpness) + std::pow(busy, fit.sharpness),
               1.0 / fit.sharpness);
  const double batch_power = fit.batch_power * std::pow(load, -fit.power_decline) /
                             (1.0 + std::pow(fit.power_batch / load, fit.power_slope));
  return {
      .time = stretched + fit.growth * load,
      .gap = stretched - busy,
      .clock_share = fit.clock_share / (1.0 + std::pow(fit.share_batch / load, fit.share_slope)),
      .active_power = (fit.floor_power + batch_power) * scale.power};
}

// Dynamic power at a clock, both as shares of those at full clock: frequency times voltage squared.
// The square of the voltage is nearly flat at low clocks and rises towards the highest one.
double DynamicShare(const OperatingFit& fit, double clock) {
  return clock * (1.0 - fit.voltage_rise + fit.voltage_rise * std::pow(clock, fit.voltage_bend));
}

// The inverse, by Newton's method. Each start value is above the root, where the function is
// convex, so that every step comes closer from above: a handful of them is exact.
double ClockFor(const OperatingFit& fit, double dynamic_share) {
  if (dynamic_share <= 0.0) return 0.0;
  constexpr int kMostSteps = 20;
  const double flat = 1.0 - fit.voltage_rise;
  double clock = std::min(dynamic_share / flat,
                          std::pow(dynamic_share / fit.voltage_rise, 1.0 / (fit.voltage_bend + 1)));
  for (int i = 0; i < kMostSteps; ++i) {
    const double rising = fit.voltage_rise * std::pow(clock, fit.voltage_bend);
    const double step =
        (clock * (flat + rising) - dynamic_share) / (flat + (fit.voltage_bend + 1.0) * rising);
    clock -= step;
    if (std::abs(step) < 1e-12) break;
  }
  return clock;
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
  return ClockFor(fit, dynamic);
}

Result<const Origin*> FindOrigin(const GpuModel& model) {
  const auto* const found = std::ranges::find(kOrigins, model.id, &Origin::model);
  if (found != kOrigins.end()) return found;
  return Error{ErrorCode::kNotSupported,
               fmt::format("the workload catalogue has no data for GPU model \"{}\"", model.id)};
}

}  // namespace

Status CheckKnobs(const GpuModel& model, const KnobSettings& knobs) {
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

Result<OperatingPoint> Predict(const GpuModel& model, const Workload& workload, unsigned batch_size,
                               const KnobSettings& knobs) {
  if (batch_size == 0) return Error{ErrorCode::kInvalidArgument, "batch size must be at least 1"};
  ZEUS_RETURN_IF_ERROR(CheckKnobs(model, knobs));
  ZEUS_TRY(const Origin* const origin, FindOrigin(model));
  const OperatingFit& fit = workload.fits->operating.at(static_cast<std::size_t>(origin->recorded));
  const FullClock full =
      AtFullClock(fit, MakeScale(model, *origin), static_cast<double>(batch_size));

  const double lowest = model.graphics_clock.min / model.graphics_clock.max;
  const double cap = knobs.clock_cap ? *knobs.clock_cap / model.graphics_clock.max : 1.0;
  const double clock = std::clamp(ClockUnderLimit(fit, model, full.active_power, knobs.power_limit),
                                  lowest, std::min(cap, 1.0));
  const double active =
      full.active_power * (fit.static_share + (1.0 - fit.static_share) * DynamicShare(fit, clock));

  // Pulse skipping leaves out part of the pulses of the lowest clock.
  const double headroom = knobs.power_limit.value() * kLargestExcess - model.idle_power.value();
  const double pulses = std::min(1.0, headroom / active);
  const double computing = full.clock_share / (clock * pulses);
  const double stretch = 1.0 - full.clock_share + computing;
  const double time = full.time * stretch;

  // The part that depends on the clock computes, and so does everything outside the gap. If power
  // demands a larger share, power decides: while it computes, the GPU stays below its limit.
  const double room = (knobs.power_limit - model.idle_power).value();
  const double utilization =
      std::max({1.0 - full.gap / time, computing / stretch, active * pulses / room});
  return OperatingPoint{
      .time_per_epoch = Seconds(time),
      .average_power = model.idle_power + Watts(active * pulses),
      .graphics_clock = SupportedClockBelow(model, model.graphics_clock.max * clock),
      .utilization = std::min(utilization, 1.0)};
}

}  // namespace zeus::sim
