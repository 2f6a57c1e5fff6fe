#include "zeus/client/node/daemon_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/client/node/borrowed_knob.h"

namespace zeus::client {
namespace {

// Without a reading for so long the daemon is gone, or its driver hangs.
constexpr Seconds kStaleAfter{5};

Error NoReading(const std::string& device) {
  return {ErrorCode::kUnavailable, fmt::format("the node daemon has no reading of {} yet", device)};
}

template <class T>
Result<T> ValueOr(const std::optional<double>& value, const Error& reason) {
  if (!value) return reason;
  return T(*value);
}

GpuReading AllMissing(const Error& why) {
  return {.energy = why,
          .instant_power = why,
          .average_power = why,
          .memory_power = why,
          .requested_limit = why,
          .enforced_limit = why,
          .temperature = why,
          .utilization = why,
          .memory = why,
          .graphics_clock = why,
          .memory_clock = why,
          .throttle = why};
}

Error NotLent(const std::string& name, wire::LeaseKnob knob) {
  return {ErrorCode::kPermissionDenied,
          fmt::format("the node daemon does not let this user set {} of {}: zeus node shows what "
                      "it lends",
                      wire::Name(knob), name)};
}

wire::LeaseKnob ClockKnob(ClockDomain domain) {
  return domain == ClockDomain::kGraphics ? wire::LeaseKnob::kGraphicsClock
                                          : wire::LeaseKnob::kMemoryClock;
}

// The range of a power limit that the daemon told; kNotSupported where there is none.
Result<PowerRange> PowerRangeOf(const std::map<wire::LeaseKnob, KnobChoices>& ranges,
                                wire::LeaseKnob knob, const std::string& name) {
  const auto found = ranges.find(knob);
  if (found == ranges.end() || !std::holds_alternative<Watts>(found->second.highest))
    return Error{ErrorCode::kNotSupported, name + " has no power limit"};
  return PowerRange{.min = std::get<Watts>(found->second.lowest),
                    .max = std::get<Watts>(found->second.highest)};
}

// The limits of a knob that this process has borrowed replace those that the recorder saw.
Status AddLoan(KnobLoans& loans, const wire::KnobKey& key, PowerLimit& limit) {
  ZEUS_TRY(const std::optional<wire::KnobView> view, loans.Look(key));
  if (!view) return Ok();
  if (const auto effective = SettingIn(view->effective))
    limit.requested = std::get<Watts>(*effective);
  limit.enforced = limit.requested;
  if (const auto enforced = SettingIn(view->enforced)) limit.enforced = std::get<Watts>(*enforced);
  return Ok();
}

}  // namespace

// --- readings ---

std::optional<DeviceView> DaemonReadings::View() const {
  if (connection_->board == nullptr) return std::nullopt;
  return connection_->board->boards()->Find(device_);
}

Result<EnergyReading> DaemonReadings::Energy() const { return Read().energy; }

Result<Watts> DaemonReadings::Power() const {
  const GpuReading reading = Read();
  return reading.instant_power.ok() ? reading.instant_power : reading.average_power;
}

GpuReading DaemonReadings::Read() const {
  if (connection_->board == nullptr) return ReadFromDaemon();
  const TimePoint now = connection_->clock.Now();
  // The boards of an earlier daemon stay mapped while they are read.
  const std::shared_ptr<const MappedBoards> boards = connection_->board->boards();
  const std::optional<DeviceView> view = boards->Find(device_);
  const auto newest = view ? view->Newest() : std::nullopt;
  if (!newest) return AllMissing(NoReading(device_));
  if (now - newest->time > kStaleAfter) {
    connection_->board->Refresh(now);
    return AllMissing({ErrorCode::kUnavailable,
                       fmt::format("the newest reading of {} at the node daemon is {:.0f} s old",
                                   device_, (now - newest->time).count())});
  }
  const auto telemetry = view->NewestTelemetry();
  GpuReading reading =
      telemetry ? telemetry->reading : AllMissing({ErrorCode::kNotSupported, "it is no GPU"});
  if (newest->reading.energy) reading.energy = *newest->reading.energy;
  if (newest->reading.power) reading.instant_power = *newest->reading.power;
  return reading;
}

GpuReading DaemonReadings::ReadFromDaemon() const {
  const auto readings = connection_->client->Readings();
  if (!readings.ok()) return AllMissing(readings.error());
  const auto found = std::ranges::find(readings.value(), device_, &ReadingView::device);
  const Error unknown{ErrorCode::kNotSupported, "the node daemon does not tell it"};
  GpuReading reading = AllMissing(found == readings.value().end() ? NoReading(device_) : unknown);
  if (found == readings.value().end()) return reading;
  if (found->energy_joules)
    reading.energy =
        EnergyReading{.total = Joules(*found->energy_joules), .epoch = 0, .taken_at = std::nullopt};
  reading.instant_power = ValueOr<Watts>(found->power_watts, unknown);
  reading.requested_limit = ValueOr<Watts>(found->requested_limit_watts, unknown);
  reading.enforced_limit = ValueOr<Watts>(found->enforced_limit_watts, unknown);
  reading.temperature = ValueOr<Celsius>(found->temperature_celsius, unknown);
  reading.graphics_clock = ValueOr<Hertz>(found->graphics_clock_hertz, unknown);
  if (found->compute_utilization && found->memory_utilization)
    reading.utilization =
        Utilization{.compute = *found->compute_utilization, .memory = *found->memory_utilization};
  return reading;
}

std::shared_ptr<ReadingFeed> DaemonReadings::Follow() const {
  return connection_->board == nullptr ? nullptr : connection_->board->Follow(device_);
}

// --- GPUs ---

DaemonGpu::DaemonGpu(std::shared_ptr<DaemonConnection> connection, NodeGpu facts, std::string name)
    : connection_(std::move(connection)),
      facts_(std::move(facts)),
      name_(std::move(name)),
      readings_(connection_, facts_.device) {}

Result<Watts> DaemonGpu::Power(PowerKind kind) {
  const GpuReading reading = Read();
  switch (kind) {
    case PowerKind::kOneSecondAverage:
      return reading.average_power;
    case PowerKind::kMemory:
      return reading.memory_power;
    case PowerKind::kInstant:
      break;
  }
  return reading.instant_power;
}

Result<PowerLimit> DaemonGpu::CurrentPowerLimit() {
  ZEUS_TRY(const PowerRange range,
           PowerRangeOf(facts_.ranges, wire::LeaseKnob::kGpuPowerLimit, name_));
  const GpuReading reading = Read();
  const Watts usual = facts_.default_limit.value_or(range.max);
  PowerLimit limit{.range = range,
                   .default_limit = usual,
                   .requested = facts_.requested_limit.value_or(usual),
                   .enforced = facts_.enforced_limit.value_or(usual)};
  if (reading.requested_limit.ok()) limit.requested = reading.requested_limit.value();
  if (reading.enforced_limit.ok()) limit.enforced = reading.enforced_limit.value();
  ZEUS_RETURN_IF_ERROR(AddLoan(connection_->loans, Key(wire::LeaseKnob::kGpuPowerLimit), limit));
  return limit;
}

Result<PowerLimit> DaemonGpu::SetPowerLimitWithoutJournal(Watts limit) {
  ZEUS_RETURN_IF_ERROR(
      connection_->loans.Ask(Key(wire::LeaseKnob::kGpuPowerLimit), wire::Exactly{limit}));
  return CurrentPowerLimit();
}

Result<std::vector<Hertz>> DaemonGpu::SupportedClocks(ClockDomain domain) {
  const auto found = facts_.ranges.find(ClockKnob(domain));
  if (found == facts_.ranges.end() || found->second.highest.index() != Setting(Hertz(0)).index())
    return Error{ErrorCode::kNotSupported,
                 fmt::format("{} has no {} clocks to choose", name_, ClockDomainName(domain))};
  std::vector<Hertz> clocks;
  for (const Setting& step : found->second.steps) clocks.push_back(std::get<Hertz>(step));
  // A daemon that tells no steps tells the ends.
  if (clocks.empty())
    clocks = {std::get<Hertz>(found->second.lowest), std::get<Hertz>(found->second.highest)};
  return clocks;
}

Result<Hertz> DaemonGpu::CurrentClock(ClockDomain domain) {
  const GpuReading reading = Read();
  return domain == ClockDomain::kGraphics ? reading.graphics_clock : reading.memory_clock;
}

Status DaemonGpu::LockClockWithoutJournal(ClockDomain domain, ClockRange range) {
  ZEUS_RETURN_IF_ERROR(connection_->loans.Ask(
      Key(ClockKnob(domain)), wire::InRange{.lowest = range.min, .highest = range.max}));
  return Ok();
}

Status DaemonGpu::ResetClock(ClockDomain domain) {
  return connection_->loans.GiveBack(Key(ClockKnob(domain)));
}

Result<Persistence> DaemonGpu::CurrentPersistence() {
  ZEUS_TRY(const std::optional<wire::KnobView> view,
           connection_->loans.Look(Key(wire::LeaseKnob::kPersistence)));
  if (view) return Persistence::kOn;
  if (facts_.persistence) return *facts_.persistence;
  return Error{ErrorCode::kNotSupported,
               "the node daemon does not tell the persistence mode of " + name_};
}

Status DaemonGpu::SetPersistence(Persistence mode) {
  const wire::KnobKey key = Key(wire::LeaseKnob::kPersistence);
  if (mode == Persistence::kOff) return connection_->loans.GiveBack(key);
  ZEUS_RETURN_IF_ERROR(connection_->loans.Ask(key, wire::SwitchedOn{}));
  return Ok();
}

Result<std::unique_ptr<KnobActuator>> DaemonGpu::Borrow(KnobKind kind) {
  const wire::LeaseKnob knob = LeaseKnobOf(kind);
  const auto choices = facts_.knobs.find(knob);
  if (choices == facts_.knobs.end()) return NotLent(name_, knob);
  const auto range = PowerRangeOf(facts_.ranges, wire::LeaseKnob::kGpuPowerLimit, name_);
  return MakeBorrowedKnob(connection_, {.key = Key(knob),
                                        .kind = kind,
                                        .device = {.name = name_,
                                                   .uuid = identity().uuid,
                                                   .pci_address = identity().pci_address,
                                                   .driver = identity().driver},
                                        .choices = choices->second,
                                        .max_power = range.ok() ? range.value().max : Watts(0),
                                        .limit = [this]() -> Result<Watts> {
                                          ZEUS_TRY(const PowerLimit limit, CurrentPowerLimit());
                                          return limit.requested;
                                        }});
}

// --- CPUs ---

// The memory of a CPU package.
class DaemonCpu::Dram final : public EnergyMeter {
 public:
  Dram(std::shared_ptr<DaemonConnection> connection, int package)
      : name_(fmt::format("dram:{}", package)), readings_(std::move(connection), name_) {}
  const std::string& name() const override { return name_; }
  Result<EnergyReading> Energy() override { return readings_.Energy(); }
  Result<Watts> Power() override { return readings_.Power(); }
  std::shared_ptr<ReadingFeed> Follow() override { return readings_.Follow(); }

 private:
  const std::string name_;
  const DaemonReadings readings_;
};

DaemonCpu::DaemonCpu(std::shared_ptr<DaemonConnection> connection, NodeCpu facts)
    : connection_(std::move(connection)),
      facts_(std::move(facts)),
      readings_(connection_, facts_.device),
      dram_(facts_.dram ? std::make_unique<Dram>(connection_, facts_.identity.package) : nullptr) {}

DaemonCpu::~DaemonCpu() = default;

EnergyMeter* DaemonCpu::dram() { return dram_.get(); }

Result<PowerLimit> DaemonCpu::CurrentPowerLimit() {
  const wire::LeaseKnob knob = wire::LeaseKnob::kCpuPowerLimit;
  ZEUS_TRY(const PowerRange range, PowerRangeOf(facts_.ranges, knob, name()));
  PowerLimit limit{
      .range = range, .default_limit = range.max, .requested = range.max, .enforced = range.max};
  ZEUS_RETURN_IF_ERROR(AddLoan(connection_->loans, {.device = name(), .knob = knob}, limit));
  return limit;
}

Result<PowerLimit> DaemonCpu::SetPowerLimitWithoutJournal(Watts limit) {
  ZEUS_RETURN_IF_ERROR(connection_->loans.Ask(
      {.device = name(), .knob = wire::LeaseKnob::kCpuPowerLimit}, wire::Exactly{limit}));
  return CurrentPowerLimit();
}

Result<std::unique_ptr<KnobActuator>> DaemonCpu::Borrow(KnobKind kind) {
  const wire::LeaseKnob knob = LeaseKnobOf(kind);
  const auto choices = facts_.knobs.find(knob);
  if (choices == facts_.knobs.end()) return NotLent(name(), knob);
  ZEUS_TRY(const PowerRange range, PowerRangeOf(facts_.ranges, knob, name()));
  return MakeBorrowedKnob(connection_, {.key = {.device = name(), .knob = knob},
                                        .kind = kind,
                                        .device = {.name = name()},
                                        .choices = choices->second,
                                        .max_power = range.max,
                                        .limit = [this]() -> Result<Watts> {
                                          ZEUS_TRY(const PowerLimit limit, CurrentPowerLimit());
                                          return limit.requested;
                                        }});
}

}  // namespace zeus::client
