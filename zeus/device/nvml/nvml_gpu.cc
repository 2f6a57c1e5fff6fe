#include "zeus/device/nvml/nvml_gpu.h"

#include <utility>

#include "zeus/device/nvml/nvml_error.h"
#include "zeus/device/nvml/nvml_identity.h"

namespace zeus::nvml {
namespace {

Result<Watts> ToWatts(Result<Sample> sample) {
  if (!sample.ok()) return std::move(sample).error();
  return Watts::FromMilli(static_cast<double>(sample.value().value));
}

// Call it with the mutex held since before the sample was taken: two readings that overtake each
// other would look like a counter that went back.
Result<EnergyReading> Account(NvmlHandle::Process& process, Result<Sample> sample) {
  if (!sample.ok()) return std::move(sample).error();
  const EnergyCounter::Total total = process.energy.Advance(sample.value().value);
  return EnergyReading{.total = Joules::FromMilli(static_cast<double>(total.ticks)),
                       .epoch = total.epoch,
                       .taken_at = sample.value().taken_at};
}

GpuReading AllFailed(const Error& error) {
  return {.energy = error,
          .instant_power = error,
          .average_power = error,
          .memory_power = error,
          .requested_limit = error,
          .enforced_limit = error,
          .temperature = error,
          .utilization = error,
          .memory = error,
          .graphics_clock = error,
          .memory_clock = error,
          .throttle = error};
}

}  // namespace

Result<std::unique_ptr<NvmlGpu>> NvmlGpu::Open(std::shared_ptr<NvmlSession> session, Device device,
                                               std::string name) {
  const Target target{.api = session->api(), .device = device};
  ZEUS_TRY(GpuIdentity identity, ReadIdentity(target));
  Probe probe{.target = target, .gone = std::nullopt};
  std::unique_ptr<NvmlGpu> gpu(new NvmlGpu(session, probe, std::move(name), std::move(identity)));
  if (probe.gone) return NvmlError(*probe.gone, gpu->identity().uuid);
  return gpu;
}

NvmlGpu::NvmlGpu(std::shared_ptr<NvmlSession> session, Probe& probe, std::string name,
                 GpuIdentity identity)
    : name_(std::move(name)),
      identity_(std::move(identity)),
      handle_(std::move(session), probe.target.device, identity_),
      channels_(probe, name_),
      temperature_(probe, Doing("read temperature"), {ReadTemperatureV, ReadTemperature}),
      utilization_(
          probe,
          Doing(InMigMode(probe.target) ? "read utilisation in MIG mode" : "read utilisation"),
          {ReadUtilization}),
      memory_(probe, Doing("read memory use"), {ReadMemoryV2, ReadMemory}),
      graphics_clock_(probe, Doing("read graphics clock"), {ReadGraphicsClock}),
      memory_clock_(probe, Doing("read memory clock"), {ReadMemoryClock}),
      throttle_(probe, Doing("read throttle reasons"), {ReadThrottleReasons}),
      bounds_(probe, Doing("read power limit range"),
              {ReadGpuBounds, ReadConstraints, ReadModuleBounds}),
      bounds_at_start_(bounds_.Read(probe.target)) {}

Result<Target> NvmlGpu::CurrentTarget() {
  ZEUS_TRY(const NvmlHandle::Process* process, handle_.Current());
  return Target{.api = handle_.api(), .device = process->device};
}

GpuReading NvmlGpu::Read() {
  auto current = handle_.Current();
  if (!current.ok()) return AllFailed(current.error());
  NvmlHandle::Process& process = *current.value();
  const Target target{.api = handle_.api(), .device = process.device};

  std::unique_lock lock(process.energy_mutex);
  const FieldBatch batch = channels_.ReadAll(target);
  auto energy = Account(process, batch[Channel::kEnergy]);
  lock.unlock();

  return {.energy = std::move(energy),
          .instant_power = ToWatts(batch[Channel::kInstantPower]),
          .average_power = ToWatts(batch[Channel::kAveragePower]),
          .memory_power = ToWatts(batch[Channel::kMemoryPower]),
          .requested_limit = ToWatts(batch[Channel::kRequestedLimit]),
          .enforced_limit = ToWatts(batch[Channel::kEnforcedLimit]),
          .temperature = temperature_.Read(target),
          .utilization = utilization_.Read(target),
          .memory = memory_.Read(target),
          .graphics_clock = graphics_clock_.Read(target),
          .memory_clock = memory_clock_.Read(target),
          .throttle = throttle_.Read(target)};
}

Result<EnergyReading> NvmlGpu::Energy() {
  ZEUS_TRY(NvmlHandle::Process * process, handle_.Current());
  const Target target{.api = handle_.api(), .device = process->device};
  const std::lock_guard lock(process->energy_mutex);
  return Account(*process, channels_.Read(target, Channel::kEnergy));
}

Result<Watts> NvmlGpu::Power(PowerKind kind) {
  switch (kind) {
    case PowerKind::kInstant:
      return ReadPower(Channel::kInstantPower);
    case PowerKind::kOneSecondAverage:
      return ReadPower(Channel::kAveragePower);
    case PowerKind::kMemory:
      return ReadPower(Channel::kMemoryPower);
  }
  return Error{ErrorCode::kInternal, Doing("read power of an unknown kind")};
}

Result<Watts> NvmlGpu::ReadPower(Channel channel) {
  ZEUS_TRY(const Target target, CurrentTarget());
  return ToWatts(channels_.Read(target, channel));
}

template <class T>
Result<T> NvmlGpu::ReadSensor(const Sensor<T>& sensor) {
  ZEUS_TRY(const Target target, CurrentTarget());
  return sensor.Read(target);
}

Result<Celsius> NvmlGpu::Temperature() { return ReadSensor(temperature_); }
Result<Utilization> NvmlGpu::CurrentUtilization() { return ReadSensor(utilization_); }
Result<MemoryUse> NvmlGpu::CurrentMemoryUse() { return ReadSensor(memory_); }
Result<ThrottleReasons> NvmlGpu::CurrentThrottleReasons() { return ReadSensor(throttle_); }

Result<Hertz> NvmlGpu::CurrentClock(ClockDomain domain) {
  return ReadSensor(domain == ClockDomain::kGraphics ? graphics_clock_ : memory_clock_);
}

}  // namespace zeus::nvml
