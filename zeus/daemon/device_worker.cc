#include "zeus/daemon/device_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/base/ticker.h"
#include "zeus/device/driver_access.h"

namespace zeus::daemon {
namespace {

using wire::LeaseKnob;

KnobKind KindOf(LeaseKnob knob) {
  switch (knob) {
    case LeaseKnob::kGpuPowerLimit:
      return KnobKind::kGpuPowerLimit;
    case LeaseKnob::kGraphicsClock:
      return KnobKind::kGraphicsClock;
    case LeaseKnob::kMemoryClock:
      return KnobKind::kMemoryClock;
    case LeaseKnob::kCpuPowerLimit:
      return KnobKind::kCpuPowerLimit;
    case LeaseKnob::kPersistence:
      break;
  }
  return KnobKind::kPersistence;
}

std::vector<LeaseKnob> KnobsOf(const DeviceWorker::Device& device) {
  if (device.cpu != nullptr) return {LeaseKnob::kCpuPowerLimit};
  return {LeaseKnob::kGpuPowerLimit, LeaseKnob::kGraphicsClock, LeaseKnob::kMemoryClock,
          LeaseKnob::kPersistence};
}

Error Unavailable(std::string message) { return {ErrorCode::kUnavailable, std::move(message)}; }

}  // namespace

std::string DeviceWorker::Device::key() const {
  if (cpu != nullptr) return cpu->name();
  const GpuIdentity& identity = gpu->identity();
  if (!identity.uuid.empty()) return identity.uuid;
  return identity.pci_address.empty() ? gpu->name() : identity.pci_address;
}

const std::string& DeviceWorker::Device::name() const {
  return cpu != nullptr ? cpu->name() : gpu->name();
}

DeviceWorker::DeviceWorker(Device device, DeskPlaces places, const DeviceDesk::Options& options,
                           std::shared_ptr<DeskRules> rules)
    : device_(device),
      key_(device.key()),
      places_(places),
      options_(options),
      may_raise_(options.may_raise.value_or(KnobPolicyOfMachine().may_raise)),
      rules_(std::move(rules)),
      watch_(places.clock,
             [name = device.name(), called = options.called](Seconds duration) {
               if (called) called(name, duration);
             }),
      missing_(KnobsOf(device)),
      prepare_again_(places.clock.Now()) {}

// --- the knobs that there are ---

Result<std::unique_ptr<KnobActuator>> DeviceWorker::MakeKnob(LeaseKnob knob) {
  const CallWatch::Call call(watch_);
  ZEUS_TRY(auto actuator, device_.cpu != nullptr ? MakeActuator(*device_.cpu)
                                                 : MakeActuator(KindOf(knob), *device_.gpu));
  if (options_.wrap) actuator = options_.wrap(std::move(actuator));
  return actuator;
}

std::optional<Watts> DeviceWorker::ReadDefaultLimit() {
  const CallWatch::Call call(watch_);
  const auto limit = device_.gpu->CurrentPowerLimit();
  return limit.ok() ? std::optional(limit.value().default_limit) : std::nullopt;
}

Status DeviceWorker::PrepareKnob(LeaseKnob knob) {
  ZEUS_TRY(auto made, MakeKnob(knob));
  auto actuator = Watched(std::move(made), watch_);
  Slot slot;
  if (knob == LeaseKnob::kPersistence) {
    ZEUS_TRY([[maybe_unused]] const KnobState state, actuator->Read());
    persistence_ = std::make_unique<PersistenceWorker>(KeyOf(knob), std::move(actuator), places_);
  } else {
    ZEUS_TRY([[maybe_unused]] const KnobState state, actuator->Read());
    ZEUS_TRY(KnobChoices choices, actuator->Choices());
    slot.choices = choices;
    if (knob == LeaseKnob::kGpuPowerLimit) slot.default_limit = ReadDefaultLimit();
    workers_[knob] =
        std::make_unique<KnobWorker>(KeyOf(knob), std::move(actuator), std::move(choices), places_);
  }
  const std::lock_guard lock(mutex_);
  slots_.emplace(knob, std::move(slot));
  return Ok();
}

// A device that cannot be asked now is asked again. What it does not support it does not have.
void DeviceWorker::PrepareKnobs() {
  const bool asked = prepare_now_.exchange(false);
  if (missing_.empty() || (!asked && places_.clock.Now() < prepare_again_)) return;
  bool lost = false;
  std::erase_if(missing_, [&](LeaseKnob knob) {
    const Status prepared = PrepareKnob(knob);
    if (!prepared.ok()) log::Debug("{}: {}", device_.name(), prepared.error().message);
    const bool later = !prepared.ok() && prepared.error().code == ErrorCode::kUnavailable;
    lost = lost || later;
    return !later;
  });
  prepare_again_ = places_.clock.Now() + options_.retry_period;
  const std::lock_guard lock(mutex_);
  lost_ = lost;
}

// --- serving ---

TimePoint DeviceWorker::Step() {
  if (rules_->stopping) return Ticker::kWhenWoken;
  if (!InMaintenance()) TakeBack();
  if (!let_go_) PrepareKnobs();
  std::vector<Work> works = CollectWork();
  // The driver is kept loaded before the first knob is turned, and until the last one is back.
  const auto own = std::ranges::find(works, LeaseKnob::kPersistence, &Work::knob);
  std::optional<Work> persistence;
  if (own != works.end()) {
    persistence = std::move(*own);
    works.erase(own);
  }
  const bool wanted = !InMaintenance() && std::ranges::any_of(works, [](const Work& work) {
    return !work.claims.claims.empty();
  });
  const bool claimed = persistence && !InMaintenance() && !persistence->claims.claims.empty();
  if (persistence_ && (claimed || (wanted && !persistence_->holding()))) {
    ServePersistence(persistence, wanted || OthersTaken());
    persistence.reset();
  }
  for (const Work& work : works)
    if (!rules_->stopping) ServeKnob(work);
  const bool needless = persistence_ && persistence_->holding() && !OthersTaken();
  if (persistence_ && (persistence || needless) && !rules_->stopping)
    ServePersistence(persistence, OthersTaken());
  if (InMaintenance()) LetGo();
  {
    const std::lock_guard lock(mutex_);
    prepared_ = true;
  }
  {
    const std::lock_guard lock(rules_->mutex);  // Not between a look and the wait after it.
  }
  rules_->changed.notify_all();
  return NextStep();
}

// Once for each BeginMaintenance(): other devices of the driver wait while it is tried.
void DeviceWorker::LetGo() {
  if (rules_->stopping || !AllReleased()) return;
  {
    const std::lock_guard lock(mutex_);
    if (free_) return;
  }
  Status closed = Ok();
  DriverAccess* const driver = device_.gpu == nullptr ? nullptr : DriverAccessOf(*device_.gpu);
  if (driver != nullptr && !let_go_) {
    const CallWatch::Call call(watch_);
    closed = driver->LetGo();
  }
  let_go_ = closed.ok();
  if (!closed.ok()) log::Warning("{}: {}", device_.name(), closed.error().message);
  const std::lock_guard lock(mutex_);
  free_ = closed;
}

void DeviceWorker::TakeBack() {
  if (!std::exchange(let_go_, false) || device_.gpu == nullptr) return;
  if (DriverAccess* const driver = DriverAccessOf(*device_.gpu)) driver->TakeBack();
}

KnobRules DeviceWorker::RulesOf(LeaseKnob knob) const {
  KnobRules rules{.may_raise = may_raise_, .maintenance = InMaintenance()};
  const std::lock_guard lock(rules_->mutex);
  rules.foreign = rules_->foreign;
  if (const auto bounds = rules_->bounds.find(knob); bounds != rules_->bounds.end())
    rules.bounds = bounds->second;
  return rules;
}

std::vector<DeviceWorker::Work> DeviceWorker::CollectWork() {
  std::vector<Work> works;
  const TimePoint now = places_.clock.Now();
  {
    const std::lock_guard lock(mutex_);
    const bool maintenance_over = maintenance_until_ && *maintenance_until_ <= now;
    if (maintenance_over) maintenance_until_.reset();
    for (auto& [knob, slot] : slots_) {
      if (maintenance_over) ++slot.wakes;
      if (slot.wakes != slot.heeded || slot.due <= now)
        works.push_back({.knob = knob, .wakes = slot.wakes});
    }
  }
  for (Work& work : works) {
    work.rules = RulesOf(work.knob);
    work.claims = source_->ClaimsOn(KeyOf(work.knob));
  }
  return works;
}

bool DeviceWorker::OthersTaken() const {
  return std::ranges::any_of(workers_, [](const auto& one) { return one.second->taken(); });
}

void DeviceWorker::ServeKnob(const Work& work) {
  KnobWorker& worker = *workers_.at(work.knob);
  KnobReport report = worker.Serve(work.claims, work.rules);
  Publish(work, std::move(report),
          {.taken = worker.taken(),
           .restore_pending = worker.restore_pending(),
           .foreign_changes = worker.foreign_changes()});
}

void DeviceWorker::ServePersistence(const std::optional<Work>& own, bool needed) {
  Work work{.knob = LeaseKnob::kPersistence, .wakes = 0};
  if (own) {
    work = *own;
  } else {
    work.rules = RulesOf(work.knob);
    work.claims = source_->ClaimsOn(KeyOf(work.knob));
    const std::lock_guard lock(mutex_);
    work.wakes = slots_.at(work.knob).heeded;
  }
  KnobReport report = persistence_->Serve(work.claims, needed, work.rules);
  Publish(work, std::move(report),
          {.mode = persistence_->mode(),
           .taken = persistence_->taken(),
           .restore_pending = persistence_->restore_pending(),
           .foreign_changes = persistence_->foreign_changes()});
}

void DeviceWorker::Publish(const Work& work, KnobReport report, Slot seen) {
  if (rules_->stopping) return;
  const wire::KnobKey key = KeyOf(work.knob);
  // Before other threads see that the claims were heeded.
  source_->Settled(key, report);
  if (options_.reported) options_.reported(key, report);
  const TimePoint now = places_.clock.Now();
  const bool retry = report.trouble || report.suspended;
  bool lost = std::ranges::any_of(workers_, [](const auto& one) { return one.second->lost(); });
  lost = lost || (persistence_ && persistence_->lost());
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_.at(work.knob);
  slot.heeded = work.wakes;
  slot.mode = seen.mode;
  slot.taken = seen.taken;
  slot.restore_pending = seen.restore_pending;
  slot.foreign_changes = seen.foreign_changes;
  slot.due = TimePoint::max();
  if (retry) slot.due = now + options_.retry_period;
  if (!retry && seen.taken) slot.due = now + options_.check_period;
  slot.latest = std::move(report);
  lost_ = lost || !missing_.empty();
}

// The clock may be another one than that of the thread: what is due by it is looked at again.
TimePoint DeviceWorker::NextStep() {
  const TimePoint now = places_.clock.Now();
  const std::lock_guard lock(mutex_);
  TimePoint due = missing_.empty() ? TimePoint::max() : prepare_again_;
  if (maintenance_until_) due = std::min(due, *maintenance_until_);
  for (const auto& [knob, slot] : slots_) {
    if (slot.wakes != slot.heeded) due = now;
    due = std::min(due, slot.due);
  }
  if (due == TimePoint::max()) return Ticker::kWhenWoken;
  return SystemClock().Now() + std::max(due - now, Seconds(0));
}

// --- other threads ---

bool DeviceWorker::Wake(LeaseKnob knob) {
  const std::lock_guard lock(mutex_);
  const auto slot = slots_.find(knob);
  if (slot == slots_.end()) return false;
  ++slot->second.wakes;
  return true;
}

void DeviceWorker::WakeAll() {
  prepare_now_ = true;
  const std::lock_guard lock(mutex_);
  for (auto& [knob, slot] : slots_) ++slot.wakes;
}

void DeviceWorker::BeginMaintenance(Seconds duration) {
  const std::lock_guard lock(mutex_);
  maintenance_until_ = places_.clock.Now() + duration;
  free_.reset();
  for (auto& [knob, slot] : slots_) ++slot.wakes;
}

void DeviceWorker::EndMaintenance() {
  const std::lock_guard lock(mutex_);
  maintenance_until_.reset();
  for (auto& [knob, slot] : slots_) ++slot.wakes;
}

bool DeviceWorker::InMaintenance() const {
  const std::lock_guard lock(mutex_);
  return maintenance_until_ && places_.clock.Now() < *maintenance_until_;
}

bool DeviceWorker::prepared() const {
  const std::lock_guard lock(mutex_);
  return prepared_;
}

bool DeviceWorker::AllReleased() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::none_of(slots_, [](const auto& one) {
    const Slot& slot = one.second;
    return slot.taken || slot.restore_pending || slot.wakes != slot.heeded;
  });
}

std::optional<Status> DeviceWorker::Free() const {
  const std::lock_guard lock(mutex_);
  return free_;
}

bool DeviceWorker::Settled(LeaseKnob knob, std::uint64_t version) const {
  const std::lock_guard lock(mutex_);
  const auto slot = slots_.find(knob);
  return slot != slots_.end() && slot->second.wakes == slot->second.heeded && slot->second.latest &&
         slot->second.latest->version == version;
}

Error DeviceWorker::Stuck() const {
  return Unavailable(
      fmt::format("device {} ({}) is stuck: its driver does not answer", device_.name(), key_));
}

Status DeviceWorker::Ready() const {
  if (watch_.InCallFor() > options_.longest_call) return Stuck();
  if (InMaintenance())
    return Unavailable(fmt::format("device {} ({}) is in maintenance", device_.name(), key_));
  ZEUS_RETURN_IF_ERROR(places_.journal.Usable());
  const std::lock_guard lock(mutex_);
  if (lost_) return Unavailable(fmt::format("device {} ({}) is lost", device_.name(), key_));
  return Ok();
}

std::optional<KnobFacts> DeviceWorker::Find(LeaseKnob knob) const {
  std::optional<KnobFacts> facts;
  {
    const std::lock_guard lock(mutex_);
    const auto slot = slots_.find(knob);
    if (slot == slots_.end()) return std::nullopt;
    facts = KnobFacts{.key = KeyOf(knob),
                      .device_name = device_.name(),
                      .choices = slot->second.choices,
                      .default_limit = slot->second.default_limit,
                      .mode = slot->second.mode};
  }
  if (facts->choices) facts->choices = Bounded(*std::move(facts->choices), RulesOf(knob).bounds);
  return facts;
}

std::vector<KnobFacts> DeviceWorker::Knobs() const {
  std::vector<KnobFacts> knobs;
  for (const LeaseKnob knob : KnobsOf(device_))
    if (auto facts = Find(knob)) knobs.push_back(*std::move(facts));
  return knobs;
}

std::optional<KnobReport> DeviceWorker::Latest(LeaseKnob knob) const {
  const std::lock_guard lock(mutex_);
  const auto slot = slots_.find(knob);
  return slot == slots_.end() ? std::nullopt : slot->second.latest;
}

DeviceDesk::DeviceState DeviceWorker::State() const {
  DeviceDesk::DeviceState state{.device = key_, .name = device_.name()};
  state.stuck = watch_.InCallFor() > options_.longest_call;
  const TimePoint now = places_.clock.Now();
  const std::lock_guard lock(mutex_);
  state.lost = lost_;
  if (maintenance_until_ && now < *maintenance_until_)
    state.maintenance_left = *maintenance_until_ - now;
  for (const auto& [knob, slot] : slots_) {
    state.foreign_changes += slot.foreign_changes;
    state.restore_pending += slot.restore_pending ? 1 : 0;
  }
  return state;
}

void DeviceWorker::ReportIfStuck() {
  const bool stuck = watch_.InCallFor() > options_.longest_call;
  if (stuck == stuck_told_) return;
  stuck_told_ = stuck;
  if (!stuck) {
    log::Warning("device {} answers again", device_.name());
    return;
  }
  const Error trouble = Stuck();
  log::Warning("{}", trouble.message);
  std::map<LeaseKnob, KnobReport> reports;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [knob, slot] : slots_) {
      KnobReport report = slot.latest.value_or(KnobReport{});
      report.trouble = trouble;
      reports.emplace(knob, std::move(report));
    }
  }
  for (const auto& [knob, report] : reports) {
    source_->Settled(KeyOf(knob), report);
    if (options_.reported) options_.reported(KeyOf(knob), report);
  }
}

}  // namespace zeus::daemon
