#include "zeus/device/nvml/nvml_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "zeus/device/nvml/nvml_readers.h"
#include "zeus/device/nvml/nvml_session.h"
#include "zeus/device/nvml/partitions.h"

namespace zeus::nvml {

EnergyCounter::Total ForkableCounter::Advance(std::uint64_t raw) {
  const unsigned next = 1 - current_;
  states_[next].emplace(*states_[1 - next]);
  const EnergyCounter::Total total = states_[next]->Advance(raw);
  current_.store(next, std::memory_order_release);
  return total;
}

NvmlHandle::NvmlHandle(std::shared_ptr<NvmlSession> session, Device device,
                       const GpuIdentity& identity)
    : session_(std::move(session)),
      uuid_(identity.uuid),
      pci_address_(identity.pci_address),
      process_(new Process(ForkGeneration(), device, session_->closings())) {}

NvmlHandle::~NvmlHandle() { delete process_.load(); }

Return NvmlHandle::FindDevice(Device* device) const {
  const Return by_uuid = Call(api().get_handle_by_uuid, uuid_.c_str(), device);
  if (by_uuid == kSuccess) return by_uuid;
  const Return by_pci = Call(api().get_handle_by_pci, pci_address_.c_str(), device);
  return by_pci == kSuccess ? by_pci : by_uuid;
}

Result<NvmlHandle::Process*> NvmlHandle::AfterFork(Process* of_parent) {
  ZEUS_RETURN_IF_ERROR(session_->Enter());
  Device device = nullptr;
  const Return code = FindDevice(&device);
  if (code != kSuccess) return NvmlError(code, "find " + uuid_ + " again after a fork");
  auto own = std::make_unique<Process>(ForkGeneration(), device, session_->closings(), *of_parent);
  if (process_.compare_exchange_strong(of_parent, own.get())) return own.release();
  (void)own->parent.release();  // Another thread was first; the parent's state is now its.
  return of_parent;
}

// Asks by PCI address first: NVML may open other GPUs while it looks for a UUID, and one of them
// may be why it was closed.
Status NvmlHandle::AfterClosing(Process& process) const {
  const unsigned closings = session_->closings();
  ZEUS_RETURN_IF_ERROR(session_->Enter());
  Device device = nullptr;
  Return code = Call(api().get_handle_by_pci, pci_address_.c_str(), &device);
  if (code != kSuccess) code = FindDevice(&device);
  if (code != kSuccess) return NvmlError(code, "find " + uuid_ + " again");
  process.device = device;
  process.closings = closings;
  return Ok();
}

Result<NvmlHandle::Held> NvmlHandle::Current() {
  Held held{.use = session_->Begin()};
  if (let_go_)
    return Error{ErrorCode::kUnavailable, uuid_ + " is in maintenance: its driver is not asked"};
  held.process = process_.load(std::memory_order_acquire);
  if (held.process->generation != ForkGeneration()) {
    ZEUS_TRY(held.process, AfterFork(held.process));
  }
  if (held.process->closings != session_->closings())
    ZEUS_RETURN_IF_ERROR(AfterClosing(*held.process));
  return held;
}

Status NvmlHandle::LetGo() {
  constexpr Seconds kPatience{2};
  let_go_ = true;
  Status closed = session_->Close(kPatience);
  if (!closed.ok()) let_go_ = false;
  return closed;
}

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

Result<NvmlGpu::HeldTarget> NvmlGpu::CurrentTarget() {
  ZEUS_TRY(NvmlHandle::Held held, handle_.Current());
  return HeldTarget{{.api = handle_.api(), .device = held.process->device}, std::move(held.use)};
}

GpuReading NvmlGpu::Read() {
  auto current = handle_.Current();
  if (!current.ok()) return AllFailed(current.error());
  NvmlHandle::Process& process = *current.value().process;
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
  ZEUS_TRY(const NvmlHandle::Held held, handle_.Current());
  NvmlHandle::Process& process = *held.process;
  const Target target{.api = handle_.api(), .device = process.device};
  const std::lock_guard lock(process.energy_mutex);
  return Account(process, channels_.Read(target, Channel::kEnergy));
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
  ZEUS_TRY(const HeldTarget target, CurrentTarget());
  return ToWatts(channels_.Read(target, channel));
}

template <class T>
Result<T> NvmlGpu::ReadSensor(const Sensor<T>& sensor) {
  ZEUS_TRY(const HeldTarget target, CurrentTarget());
  return sensor.Read(target);
}

Result<Celsius> NvmlGpu::Temperature() { return ReadSensor(temperature_); }
Result<Utilization> NvmlGpu::CurrentUtilization() { return ReadSensor(utilization_); }
Result<MemoryUse> NvmlGpu::CurrentMemoryUse() { return ReadSensor(memory_); }
Result<ThrottleReasons> NvmlGpu::CurrentThrottleReasons() { return ReadSensor(throttle_); }

Result<Hertz> NvmlGpu::CurrentClock(ClockDomain domain) {
  return ReadSensor(domain == ClockDomain::kGraphics ? graphics_clock_ : memory_clock_);
}

Result<std::vector<std::string>> NvmlGpu::Partitions() {
  ZEUS_TRY(const HeldTarget target, CurrentTarget());
  return ReadPartitions(target);
}

Result<std::vector<ProcessSample>> NvmlGpu::ProcessSamples(WallTime since) {
  ZEUS_TRY(const HeldTarget target, CurrentTarget());
  const auto after = static_cast<unsigned long long>(since.time_since_epoch().count());
  std::vector<ProcessUtilizationSample> entries(64);
  auto count = static_cast<unsigned>(entries.size());
  const auto read = [&] {
    return Call(target.api.get_process_utilization, target.device, entries.data(), &count, after);
  };
  Return code = read();
  if (code == kInsufficientSize) {
    entries.resize(2 * static_cast<std::size_t>(count));  // More may have come meanwhile.
    count = static_cast<unsigned>(entries.size());
    code = read();
  }
  std::vector<ProcessSample> samples;
  if (code == kNotFound) return samples;  // Nothing ran.
  if (code != kSuccess) return NvmlError(code, Doing("read utilisation by processes"));
  for (unsigned i = 0; i < count && i < entries.size(); ++i) {
    const ProcessUtilizationSample& entry = entries[i];
    // Drivers leave parts of the buffer as they were.
    if (entry.pid == 0 || entry.timestamp <= after || entry.sm_utilization > 100) continue;
    samples.push_back({.pid = entry.pid,
                       .time = WallTime(std::chrono::microseconds(entry.timestamp)),
                       .compute = entry.sm_utilization / 100.0});
  }
  return samples;
}

// The knobs of NvmlGpu. NVML may accept a value and not apply it, so each is read back.

namespace {

// Reads a list of which NVML tells the length only after it was too short.
template <class Function>
Result<std::vector<Hertz>> ReadClockList(const Function& read, const std::string& doing) {
  constexpr unsigned kUsual = 256;
  constexpr unsigned kAbsurd = 65536;
  std::vector<unsigned> megahertz(kUsual);
  auto count = static_cast<unsigned>(megahertz.size());
  Return code = read(&count, megahertz.data());
  if (code == kInsufficientSize && count <= kAbsurd) {
    megahertz.resize(count);
    code = read(&count, megahertz.data());
  }
  if (code != kSuccess) return NvmlError(code, doing);
  megahertz.resize(std::min<std::size_t>(count, megahertz.size()));
  std::ranges::sort(megahertz);
  const auto repeated = std::ranges::unique(megahertz);
  megahertz.erase(repeated.begin(), repeated.end());
  if (megahertz.empty())
    return Error{ErrorCode::kNotSupported, doing + ": the driver lists no clock"};
  std::vector<Hertz> clocks;
  clocks.reserve(megahertz.size());
  for (const unsigned clock : megahertz) clocks.push_back(Hertz::FromMega(clock));
  return clocks;
}

unsigned ToMegahertz(Hertz clock) {
  return static_cast<unsigned>(std::llround(std::clamp(clock.ToMega(), 0.0, 1e6)));
}

}  // namespace

Result<LimitBounds> NvmlGpu::Bounds(const Target& target) const {
  const bool unchanged =
      bounds_at_start_.ok() || bounds_at_start_.error().code == ErrorCode::kNotSupported;
  return unchanged ? bounds_at_start_ : bounds_.Read(target);
}

Result<PowerLimit> NvmlGpu::ReadPowerLimit(const Target& target) const {
  ZEUS_TRY(const LimitBounds bounds, Bounds(target));
  const FieldBatch batch = channels_.ReadAll(target);
  ZEUS_TRY(const Sample requested, batch[Channel::kRequestedLimit]);
  ZEUS_TRY(const Sample enforced, batch[Channel::kEnforcedLimit]);
  return PowerLimit{
      .range = {.min = Watts::FromMilli(bounds.min), .max = Watts::FromMilli(bounds.max)},
      .default_limit = Watts::FromMilli(bounds.default_limit),
      .requested = Watts::FromMilli(static_cast<double>(requested.value)),
      .enforced = Watts::FromMilli(static_cast<double>(enforced.value))};
}

Result<PowerLimit> NvmlGpu::CurrentPowerLimit() {
  ZEUS_TRY(const HeldTarget target, CurrentTarget());
  return ReadPowerLimit(target);
}

Result<PowerLimit> NvmlGpu::SetPowerLimitWithoutJournal(Watts limit) {
  ZEUS_TRY(const HeldTarget target, CurrentTarget());
  // Also proves that the result can be read back before anything is changed.
  ZEUS_TRY(const PowerLimit before, ReadPowerLimit(target));
  const PowerRange range = before.range;
  if (!(limit >= range.min && limit <= range.max)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: a power limit of {} W is outside {} W to {} W", name_,
                             limit.value(), range.min.value(), range.max.value())};
  }
  const auto milliwatts = static_cast<unsigned>(std::llround(limit.ToMilli()));
  const std::string doing = fmt::format("{}: set power limit to {} W", name_, limit.value());
  ZEUS_RETURN_IF_ERROR(
      ToStatus(Call(target.api.set_power_limit, target.device, milliwatts), doing));

  auto after = ReadPowerLimit(target);
  if (!after.ok()) return std::move(after).error().While(doing + " (reading it back)");
  if (after.value().requested != Watts::FromMilli(milliwatts)) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{}: the driver accepted it but the limit is now {} W", doing,
                             after.value().requested.value())};
  }
  return after;
}

Result<std::vector<Hertz>> NvmlGpu::SupportedClocks(ClockDomain domain) {
  ZEUS_TRY(const HeldTarget target, CurrentTarget());
  const NvmlApi& api = target.api;
  const auto read_memory = [&](unsigned* count, unsigned* clocks) {
    return Call(api.get_memory_clocks, target.device, count, clocks);
  };
  auto memory = ReadClockList(read_memory, Doing("list memory clocks"));
  if (domain == ClockDomain::kMemory || !memory.ok()) return memory;

  const unsigned highest = ToMegahertz(memory.value().back());
  const auto read_graphics = [&](unsigned* count, unsigned* clocks) {
    return Call(api.get_graphics_clocks, target.device, highest, count, clocks);
  };
  return ReadClockList(read_graphics, Doing("list graphics clocks"));
}

Status NvmlGpu::LockClockWithoutJournal(ClockDomain domain, ClockRange range) {
  if (!(range.min <= range.max)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: a clock range from {} MHz to {} MHz is empty", name_,
                             range.min.ToMega(), range.max.ToMega())};
  }
  const std::string doing =
      fmt::format("{}: lock {} clock to {}-{} MHz", name_, ClockDomainName(domain),
                  range.min.ToMega(), range.max.ToMega());
  // Boards that keep their list to themselves can often be locked all the same.
  const auto supported = SupportedClocks(domain);
  if (!supported.ok() && supported.error().code != ErrorCode::kNotSupported)
    return supported.error().While(doing);
  if (supported.ok()) {
    const auto inside = [&](Hertz clock) { return clock >= range.min && clock <= range.max; };
    const std::vector<Hertz>& clocks = supported.value();
    if (std::ranges::none_of(clocks, inside)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: no supported clock lies inside; they go from {} to {} MHz",
                               doing, clocks.front().ToMega(), clocks.back().ToMega())};
    }
  }
  ZEUS_TRY(const HeldTarget target, CurrentTarget());
  const auto set = domain == ClockDomain::kGraphics ? target.api.set_graphics_clock_lock
                                                    : target.api.set_memory_clock_lock;
  return ToStatus(Call(set, target.device, ToMegahertz(range.min), ToMegahertz(range.max)), doing);
}

Status NvmlGpu::ResetClock(ClockDomain domain) {
  ZEUS_TRY(const HeldTarget target, CurrentTarget());
  const auto reset = domain == ClockDomain::kGraphics ? target.api.reset_graphics_clock_lock
                                                      : target.api.reset_memory_clock_lock;
  return ToStatus(Call(reset, target.device),
                  fmt::format("{}: reset {} clock", name_, ClockDomainName(domain)));
}

Result<Persistence> NvmlGpu::CurrentPersistence() {
  ZEUS_TRY(const HeldTarget target, CurrentTarget());
  int mode = 0;
  ZEUS_RETURN_IF_ERROR(ToStatus(Call(target.api.get_persistence, target.device, &mode),
                                Doing("read persistence mode")));
  return mode == 0 ? Persistence::kOff : Persistence::kOn;
}

Status NvmlGpu::SetPersistence(Persistence mode) {
  const std::string doing = Doing("set persistence mode");
  {
    ZEUS_TRY(const HeldTarget target, CurrentTarget());
    ZEUS_RETURN_IF_ERROR(ToStatus(
        Call(target.api.set_persistence, target.device, mode == Persistence::kOn ? 1 : 0), doing));
  }
  ZEUS_TRY(const Persistence after, CurrentPersistence());
  if (after == mode) return Ok();
  return Error{ErrorCode::kUnavailable, doing + ": the driver accepted it but did not change it"};
}

}  // namespace zeus::nvml
