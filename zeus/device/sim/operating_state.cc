// Operate() answers what the GPU does until the next event: it collects what all loads want at full
// clock, finds the clock that limits, locked clocks and heat allow, and splits time and power among
// the loads at that clock.
#include "zeus/device/sim/operating_state.h"

#include <algorithm>

#include "zeus/device/sim/gpu_model.h"

namespace zeus::sim {
namespace {

// Memory traffic of a GPU that draws its default limit.
constexpr double kMemoryUtilizationAtFullPower = 0.6;

// The clock of a GPU that is too hot, as a share of its highest clock.
constexpr double kSlowdown = 0.5;

// The demand of all loads together if power limits acted only through the catalogue's clocks.
struct Wish {
  Watts plain{};       // Constant power above idle.
  Watts workloads{};   // Above idle, on average.
  double computing{};  // Share of time with a kernel running.
  Watts least{};  // The power that the workloads draw even at the lowest clock, whatever the limit.
  Hertz clock;
};

Hertz ClockCap(const GpuModel& model, const Constraints& constraints) {
  Hertz cap = model.graphics_clock.max;
  if (constraints.locked_clock) cap = std::min(cap, constraints.locked_clock->max);
  if (constraints.cooling == Cooling::kSlowedDown)
    cap = std::min(cap, model.graphics_clock.max * kSlowdown);
  return SupportedClockBelow(model, cap);
}

Watts AboveIdle(const GpuModel& model, const Load& load) {
  return std::max(load.point.average_power - model.idle_power, Watts(0));
}

// Iterations of engines take turns with other workloads: each draws its power for its part of the
// time.
double TimeSlices(const LoadTable& loads, const Load& load) {
  return load.engine() ? static_cast<double>(loads.workload_count()) : 1.0;
}

// Each engine has the power of its iterations, static power included, for its part of the time. The
// rest belongs to the other loads.
void ShareEnergy(const GpuModel& model, LoadTable& loads, Watts wanted) {
  for (Load& load : loads.loads())
    if (load.engine())
      load.energy_share = load.resting ? 0.0
                                       : (model.idle_power + AboveIdle(model, load)) /
                                             TimeSlices(loads, load) / wanted;
}

Wish Collect(const GpuModel& model, LoadTable& loads, Watts limit, Hertz cap) {
  KnobSettings knobs{.power_limit = std::clamp(limit, model.limit_range.min, model.limit_range.max),
                     .clock_cap = std::nullopt};
  if (cap < model.graphics_clock.max) knobs.clock_cap = cap;

  Wish wish{.clock = cap};
  const double plain_share = PowerShareAt(model, cap);
  const bool only_waits = loads.only_waits();
  for (Load& load : loads.loads()) {
    if (load.resting || (load.waits && !only_waits)) continue;
    if (load.plain()) {
      wish.plain += std::max(load.demand - model.idle_power, Watts(0)) * plain_share;
      wish.computing += 1.0;
    } else {
      load.Predict(model, knobs);
      load.step_time = load.StepTimeAlone() * loads.workload_count();
      wish.workloads += AboveIdle(model, load) / TimeSlices(loads, load);
      wish.least = std::max(wish.least, load.point.average_power);
      wish.computing += load.point.utilization;
      wish.clock = std::min(wish.clock, load.point.graphics_clock);
    }
  }
  wish.computing = std::min(wish.computing, 1.0);
  return wish;
}

// Some workloads draw more than a low limit even at the lowest clock, as recorded. A cap from
// outside that is below the range of limits has other means.
Watts ReachableLimit(const GpuModel& model, Watts limit, const Wish& wish) {
  if (limit >= model.limit_range.min) limit = std::max(limit, wish.least);
  return std::max(limit, model.idle_power);
}

StepProfile MakeStepProfile(const LoadTable& loads, const Wish& wish, Watts mean,
                            const PowerRange& between) {
  const Load* lead = loads.first_workload();
  if (lead == nullptr) return ConstantProfile(mean);
  return TwoLevelProfile(mean, between, lead->step_time, wish.computing);
}

}  // namespace

OperatingState Operate(const GpuModel& model, LoadTable& loads, const Constraints& constraints) {
  const Watts idle = model.idle_power;
  const Hertz cap = ClockCap(model, constraints);
  const Hertz floor = constraints.locked_clock ? constraints.locked_clock->min : Hertz(0);
  if (loads.none_works()) {
    ShareEnergy(model, loads, idle);
    return {.profile = ConstantProfile(idle),
            .graphics_clock = std::clamp(floor, SupportedClockBelow(model, Hertz(0)), cap),
            .utilization = {.compute = 0.0, .memory = 0.0},
            .power_capped = false,
            .at_limit = false};
  }

  const Wish wish = Collect(model, loads, constraints.power_limit, cap);
  const Watts limit = ReachableLimit(model, constraints.power_limit, wish);
  const Watts wanted = idle + wish.plain + wish.workloads;
  const Watts mean = std::min(wanted, limit);
  ShareEnergy(model, loads, wanted);
  Hertz clock = wish.clock;
  if (wanted > limit) {
    const double kept = (limit - idle) / (wanted - idle);
    clock = std::min(clock, HighestClockWithin(model, kept * PowerShareAt(model, clock)));
  }
  const double intensity = (mean - idle) / (model.default_limit - idle);
  const PowerRange between{.min = std::min(mean, idle + wish.plain), .max = limit};
  return {
      .profile = MakeStepProfile(loads, wish, mean, between),
      .graphics_clock = clock,
      .utilization = {.compute = wish.computing,
                      .memory = std::clamp(kMemoryUtilizationAtFullPower * intensity, 0.0, 1.0)},
      .power_capped = (clock < cap),
      .at_limit = (wanted > limit)};
}

}  // namespace zeus::sim
