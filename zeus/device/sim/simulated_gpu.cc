#include "zeus/device/sim/simulated_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "zeus/device/sim/gpu_core.h"

namespace zeus::sim {

SimulatedGpu::SimulatedGpu(Clock& clock, const GpuModel& model, Options options)
    : clock_(clock),
      start_(clock.Now()),
      name_(fmt::format("gpu:{}", options.index)),
      core_(std::make_unique<GpuCore>(model, options.seed, options.index)),
      identity_{.uuid = core_->uuid(),
                .pci_address = core_->pci_address(),
                .model = std::string(model.name),
                .driver = "simulated",
                .vendor = Vendor::kNvidia} {}

SimulatedGpu::~SimulatedGpu() = default;

template <class Function>
auto SimulatedGpu::WithCore(Function function) {
  const std::lock_guard lock(mutex_);
  core_->AdvanceTo(clock_.Now() - start_);
  return function(*core_);
}

void SimulatedGpu::WaitIfSlow() {
  // Other threads are served meanwhile.
  const auto slow = WithCore([](GpuCore& core) { return core.DrawFault(FaultKind::kSlowCall); });
  if (slow) clock_.SleepFor(slow->delay);
}

template <class Function>
auto SimulatedGpu::DriverCall(Function function) -> decltype(function(std::declval<GpuCore&>())) {
  WaitIfSlow();
  return WithCore([&](GpuCore& core) -> decltype(function(core)) {
    if (core.DrawFault(FaultKind::kLost)) return Lost();
    return function(core);
  });
}

Error SimulatedGpu::Lost() const {
  return {ErrorCode::kUnavailable,
          fmt::format("{} is lost: it has fallen off the bus; reset it or reboot", name_)};
}

std::optional<Error> SimulatedGpu::Refusal() {
  if (core_->DrawFault(FaultKind::kNoPermission))
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("changing {} needs root or the daemon", name_)};
  if (core_->DrawFault(FaultKind::kSetterUnsupported))
    return Error{ErrorCode::kNotSupported, fmt::format("{} cannot be changed", name_)};
  return std::nullopt;
}

Result<EnergyReading> SimulatedGpu::ReadEnergy() {
  ZEUS_TRY(const std::uint64_t millijoules, core_->counter_millijoules());
  const EnergyCounter::Total total = counter_.Advance(millijoules);
  return EnergyReading{.total = Joules::FromMilli(static_cast<double>(total.ticks)),
                       .epoch = total.epoch,
                       .taken_at = std::nullopt};
}

Result<Watts> SimulatedGpu::ReadPower(PowerKind kind) {
  auto power = core_->power(kind);
  if (power.ok() && core_->DrawFault(FaultKind::kPowerUnavailable))
    return Error{ErrorCode::kUnavailable, "power reads as not available"};
  return power;
}

Result<Utilization> SimulatedGpu::ReadUtilization() {
  if (core_->fault(FaultKind::kMigEnabled))
    return Error{ErrorCode::kNotSupported, "a GPU in MIG mode has no utilization of its own"};
  return core_->utilization();
}

Result<EnergyReading> SimulatedGpu::Energy() {
  return DriverCall([this](GpuCore&) { return ReadEnergy(); });
}

GpuReading SimulatedGpu::Read() {
  WaitIfSlow();
  return WithCore([this](GpuCore& core) -> GpuReading {
    if (core.DrawFault(FaultKind::kLost))
      return {Lost(), Lost(), Lost(), Lost(), Lost(), Lost(),
              Lost(), Lost(), Lost(), Lost(), Lost(), Lost()};
    const PowerLimit limit = core.power_limit();
    return {.energy = ReadEnergy(),
            .instant_power = ReadPower(PowerKind::kInstant),
            .average_power = ReadPower(PowerKind::kOneSecondAverage),
            .memory_power = ReadPower(PowerKind::kMemory),
            .requested_limit = limit.requested,
            .enforced_limit = limit.enforced,
            .temperature = core.temperature(),
            .utilization = ReadUtilization(),
            .memory = core.memory(),
            .graphics_clock = core.clock(ClockDomain::kGraphics),
            .memory_clock = core.clock(ClockDomain::kMemory),
            .throttle = core.throttle()};
  });
}

Result<Watts> SimulatedGpu::Power(PowerKind kind) {
  return DriverCall([this, kind](GpuCore&) { return ReadPower(kind); });
}

Result<Celsius> SimulatedGpu::Temperature() {
  return DriverCall([](GpuCore& core) -> Result<Celsius> { return core.temperature(); });
}

Result<Utilization> SimulatedGpu::CurrentUtilization() {
  return DriverCall([this](GpuCore&) { return ReadUtilization(); });
}

Result<MemoryUse> SimulatedGpu::CurrentMemoryUse() {
  return DriverCall([](GpuCore& core) -> Result<MemoryUse> { return core.memory(); });
}

Result<ThrottleReasons> SimulatedGpu::CurrentThrottleReasons() {
  return DriverCall([](GpuCore& core) -> Result<ThrottleReasons> { return core.throttle(); });
}

Result<PowerLimit> SimulatedGpu::CurrentPowerLimit() {
  return DriverCall([](GpuCore& core) -> Result<PowerLimit> { return core.power_limit(); });
}

Result<PowerLimit> SimulatedGpu::SetPowerLimitWithoutJournal(Watts limit) {
  return DriverCall([this, limit](GpuCore& core) -> Result<PowerLimit> {
    if (auto refusal = Refusal()) return *std::move(refusal);
    ZEUS_RETURN_IF_ERROR(core.SetPowerLimit(limit));
    return core.power_limit();
  });
}

Result<std::vector<Hertz>> SimulatedGpu::SupportedClocks(ClockDomain domain) {
  return DriverCall([domain](GpuCore& core) -> Result<std::vector<Hertz>> {
    return core.supported_clocks(domain);
  });
}

Result<Hertz> SimulatedGpu::CurrentClock(ClockDomain domain) {
  return DriverCall([domain](GpuCore& core) -> Result<Hertz> { return core.clock(domain); });
}

Status SimulatedGpu::LockClockWithoutJournal(ClockDomain domain, ClockRange range) {
  return DriverCall([this, domain, range](GpuCore& core) -> Status {
    if (auto refusal = Refusal()) return *std::move(refusal);
    return core.LockClock(domain, range);
  });
}

Status SimulatedGpu::ResetClock(ClockDomain domain) {
  return DriverCall([this, domain](GpuCore& core) -> Status {
    if (auto refusal = Refusal()) return *std::move(refusal);
    return core.ResetClock(domain);
  });
}

Result<Persistence> SimulatedGpu::CurrentPersistence() {
  return DriverCall([](GpuCore& core) -> Result<Persistence> { return core.persistence(); });
}

Status SimulatedGpu::SetPersistence(Persistence mode) {
  return DriverCall([this, mode](GpuCore& core) -> Status {
    if (auto refusal = Refusal()) return *std::move(refusal);
    core.SetPersistence(mode);
    return Ok();
  });
}

Result<std::uint32_t> SimulatedGpu::AttachLoad(const LoadSpec& load) {
  return WithCore([&load](GpuCore& core) { return core.AttachLoad(load); });
}

void SimulatedGpu::DetachLoad(std::uint32_t id) {
  WithCore([id](GpuCore& core) { core.DetachLoad(id); });
}

Result<Seconds> SimulatedGpu::StepTime(std::uint32_t id) {
  return WithCore([id](GpuCore& core) { return core.StepTime(id); });
}

Result<double> SimulatedGpu::StepsDone(std::uint32_t id) {
  return WithCore([id](GpuCore& core) { return core.StepsDone(id); });
}

Result<Seconds> SimulatedGpu::TimeLeft(std::uint32_t id) {
  return WithCore([id](GpuCore& core) -> Result<Seconds> {
    ZEUS_TRY(const Seconds end, core.PredictEnd(id));
    return end - core.now();
  });
}

bool SimulatedGpu::InjectFault(const Fault& fault) {
  return WithCore([&fault](GpuCore& core) { return core.InjectFault(fault).ok(); });
}

void SimulatedGpu::ClearFaults() {
  WithCore([](GpuCore& core) { core.ClearFaults(); });
}

void SimulatedGpu::SetAmbient(Celsius ambient) {
  WithCore([ambient](GpuCore& core) { core.SetAmbient(ambient); });
}

Joules SimulatedGpu::ExactEnergy() {
  return WithCore([](GpuCore& core) { return core.exact_energy(); });
}

Watts SimulatedGpu::ExactPower() {
  return WithCore([](GpuCore& core) { return core.exact_power(); });
}

Status SimulatedGpu::ChangeAt(Seconds time, const std::function<Status(GpuCore&)>& change) {
  const std::lock_guard lock(mutex_);
  core_->AdvanceTo(std::min(time, clock_.Now() - start_));
  return change(*core_);
}

GpuCore SimulatedGpu::Snapshot() {
  return WithCore([](GpuCore& core) { return core; });
}

}  // namespace zeus::sim
