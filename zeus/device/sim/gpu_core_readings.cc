// The values of a simulated GPU that programs can read, and the exact ones that only scoring code
// may read.
#include <algorithm>

#include "zeus/device/sim/gpu_core.h"

namespace zeus::sim {
namespace {

// Share of the board's power that memory draws, on parts that report it: HBM under a training load.
constexpr double kMemoryPowerShare = 0.15;

constexpr std::uint64_t kMiB = 1024ULL * 1024;
constexpr std::uint64_t kDriverMemory = 450 * kMiB;
constexpr std::uint64_t kContextMemory = 600 * kMiB;
constexpr double kLargestBatchShare = 0.8;

// The catalogue records no memory use: the largest batch size nearly fills the memory, and the
// rest follows in proportion.
std::uint64_t MemoryOf(const Load& load, const GpuModel& model) {
  if (load.plain()) return kContextMemory;
  const Workload& workload = Workloads()[static_cast<std::size_t>(load.workload)];
  const double share = static_cast<double>(load.batch_size) / workload.batch_sizes.back();
  const double activations =
      kLargestBatchShare * std::min(share, 1.0) * static_cast<double>(model.memory_bytes);
  return kContextMemory + static_cast<std::uint64_t>(activations);
}

}  // namespace

Joules GpuCore::exact_energy() const {
  EnergySum energy = energy_;
  energy.Add(regime_.EnergyUntil(now_));
  return energy.Total();
}

Watts GpuCore::exact_power() const { return regime_.PowerAt(now_); }

Joules GpuCore::EnergyBetween(Seconds begin, Seconds end) const {
  Joules energy(0);
  if (end > regime_.start) energy += regime_.EnergyBetween(std::max(begin, regime_.start), end);
  if (begin < regime_.start) energy += history_.EnergyBetween(begin, std::min(end, regime_.start));
  return energy;
}

void GpuCore::UpdateCounter(CounterRegister& counter) const {
  const auto& period = model().sensors.counter_update;
  if (!period) return;
  const Seconds instant = LastUpdate(now_, *period, board_.counter_phase);
  // Updates of earlier regimes were taken when those ended.
  if (instant < regime_.start || instant <= counter.last_update()) return;
  EnergySum energy = energy_;
  energy.Add(regime_.EnergyUntil(instant));
  counter.Update(instant, energy.Total() * board_.gain + board_.offset * instant);
}

Result<std::uint64_t> GpuCore::counter_millijoules() const {
  if (!model().sensors.counter_update)
    return Error{ErrorCode::kNotSupported,
                 "this GPU has no energy counter (it is older than Volta)"};
  CounterRegister counter = counter_;
  UpdateCounter(counter);
  return counter.millijoules();
}

Result<Watts> GpuCore::power(PowerKind kind) const {
  const SensorSpec& sensors = model().sensors;
  if (const auto broken = fault(FaultKind::kPowerUnavailable); broken && broken->probability >= 1.0)
    return Error{ErrorCode::kUnavailable, "power reads as not available"};
  if (kind == PowerKind::kOneSecondAverage && !sensors.has_one_second_average)
    return Error{ErrorCode::kNotSupported, "this GPU has no 1-second average of power"};
  if (kind == PowerKind::kMemory && !sensors.has_memory_power)
    return Error{ErrorCode::kNotSupported, "this GPU does not measure the power of its memory"};

  const bool instant = kind == PowerKind::kInstant;
  const Seconds window = instant ? sensors.power_window : Seconds(1.0);
  const Seconds update =
      LastUpdate(now_, sensors.power_update, instant ? board_.power_phase : board_.average_phase);
  // A window may begin before time zero: the board was idle then.
  const Watts reported = board_.Reported(EnergyBetween(update - window, update) / window);
  return kind == PowerKind::kMemory ? reported * kMemoryPowerShare : reported;
}

Celsius GpuCore::temperature() const { return regime_.thermal.TemperatureAt(now_ - regime_.start); }

MemoryUse GpuCore::memory() const {
  const GpuModel& model = this->model();
  std::uint64_t used = kDriverMemory;
  for (const Load& load : loads_.loads()) used += MemoryOf(load, model);
  return {.used_bytes = std::min(used, model.memory_bytes), .total_bytes = model.memory_bytes};
}

Hertz GpuCore::clock(ClockDomain domain) const {
  return domain == ClockDomain::kGraphics ? state_.graphics_clock : model().memory_clock;
}

ThrottleReasons GpuCore::throttle() const {
  const bool idle = loads_.loads().empty();
  const auto& lock = graphics_lock_.effective();
  return {.idle = idle,
          .power_cap = state_.power_capped,
          .thermal = cooling_ == Cooling::kSlowedDown,
          .locked_clock = !idle && lock && lock->max < model().graphics_clock.max};
}

std::vector<int> GpuCore::processes() const {
  std::vector<int> pids;
  for (const Load& load : loads_.loads())
    if (load.pid != 0 && std::find(pids.begin(), pids.end(), load.pid) == pids.end())
      pids.push_back(load.pid);
  return pids;
}

}  // namespace zeus::sim
