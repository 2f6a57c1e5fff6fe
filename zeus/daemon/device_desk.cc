#include "zeus/daemon/device_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "zeus/base/detached_call.h"
#include "zeus/base/log.h"
#include "zeus/base/ticker.h"
#include "zeus/daemon/device_worker.h"

namespace zeus::daemon {
namespace {

// A worker with its thread. The thread ends before the worker.
struct Desk {
  std::shared_ptr<DeviceWorker> worker;
  std::unique_ptr<Ticker> thread{};
};

// The part of a desk that outlives it while a device hangs.
struct Desks {
  std::shared_ptr<DeskRules> rules = std::make_shared<DeskRules>();
  std::vector<Desk> all{};
};

Error NoSuchDevice(const std::string& device) {
  return {ErrorCode::kNotFound, fmt::format("there is no device {}", device)};
}

}  // namespace

class DeviceDesk::State {
 public:
  State(const Node& node, DeskPlaces places, const Options& options)
      : places_(places), options_(options) {
    desks_->rules->foreign = options.foreign;
    desks_->rules->bounds = options.bounds;
    const auto add = [&](DeviceWorker::Device device) {
      desks_->all.push_back(
          {.worker = std::make_shared<DeviceWorker>(device, places, options, desks_->rules)});
    };
    for (const auto& gpu : node.gpus) add({.gpu = gpu.get()});
    for (const auto& cpu : node.cpus) add({.cpu = cpu.get()});
  }

  ~State() {
    watch_.reset();
    desks_->rules->stopping = true;
    // A thread that hangs in its driver is left behind, with all that it uses but the device.
    const DetachedCall<bool> end([desks = desks_] {
      for (Desk& desk : desks->all) desk.thread.reset();
      return true;
    });
    if (end.FinishedWithin(std::min(options_.longest_call, kLongestEnd))) return;
    for (const Desk& desk : desks_->all) desk.worker->Abandon();
  }

  Status Start(ClaimSource& source) {
    source_ = &source;
    ZEUS_RETURN_IF_ERROR(ForgetOutdated());
    try {
      for (Desk& desk : desks_->all) {
        desk.worker->Serve(source);
        desk.thread = std::make_unique<Ticker>(
            "zeus device", [worker = desk.worker.get()] { return worker->Step(); });
      }
      watch_.emplace("zeus stuck", [this] { return LookForStuck(); });
    } catch (const std::system_error&) {
      return NoThreadError();
    }
    // A device that hangs does not keep the others from being served.
    WaitFor(options_.longest_call, [this] {
      return std::ranges::all_of(desks_->all,
                                 [](const Desk& desk) { return desk.worker->prepared(); });
    });
    return Ok();
  }

  Desk* Find(const std::string& device) const {
    for (Desk& desk : desks_->all)
      if (desk.worker->key() == device) return &desk;
    return nullptr;
  }

  std::vector<Desk>& all() const { return desks_->all; }
  DeskRules& rules() const { return *desks_->rules; }
  const Options& options() const { return options_; }
  const ClaimSource* source() const { return source_; }

  // `holds` is asked without a lock of the desk: it may ask the claims.
  template <class Condition>
  bool WaitFor(Seconds timeout, Condition holds) const {
    const SystemClock clock;
    const TimePoint deadline = clock.Now() + timeout;
    while (!holds()) {
      // A worker that finishes between the question and the wait is noticed by the next look.
      constexpr Seconds kNextLook{0.01};
      const Seconds left = deadline - clock.Now();
      if (left <= Seconds(0)) return false;
      std::unique_lock lock(desks_->rules->mutex);
      desks_->rules->changed.wait_for(lock, std::min(left, kNextLook));
    }
    return true;
  }

  static void WakeAll(Desk& desk) {
    desk.worker->WakeAll();
    if (desk.thread) desk.thread->Wake();
  }

 private:
  static constexpr Seconds kLongestEnd{2};

  // Entries of an earlier boot, also those of devices that are not here.
  Status ForgetOutdated() const {
    ZEUS_TRY(const auto records, places_.journal.List());
    for (const auto& record : records)
      if (record.standing == KnobJournal::Standing::kOutdated)
        ZEUS_RETURN_IF_ERROR(places_.journal.Discard(record.entry));
    return Ok();
  }

  TimePoint LookForStuck() const {
    for (const Desk& desk : desks_->all) desk.worker->ReportIfStuck();
    return SystemClock().Now() + options_.longest_call / 4;
  }

  const DeskPlaces places_;
  const Options options_;
  ClaimSource* source_ = nullptr;
  std::shared_ptr<Desks> desks_ = std::make_shared<Desks>();
  std::optional<Ticker> watch_;
};

DeviceDesk::DeviceDesk(Clock& clock, const Node& node, KnobJournal& journal, AuditLog* audit,
                       Options options)
    : state_(std::make_unique<State>(node, DeskPlaces{clock, journal, audit}, options)) {}

DeviceDesk::~DeviceDesk() = default;

Status DeviceDesk::Start(ClaimSource& source) { return state_->Start(source); }

std::optional<KnobFacts> DeviceDesk::Find(const wire::KnobKey& knob) const {
  const Desk* desk = state_->Find(knob.device);
  return desk == nullptr ? std::nullopt : desk->worker->Find(knob.knob);
}

void DeviceDesk::Wake(const wire::KnobKey& knob) {
  const Desk* desk = state_->Find(knob.device);
  if (desk != nullptr && desk->worker->Wake(knob.knob) && desk->thread) desk->thread->Wake();
}

void DeviceDesk::Refresh(const std::string& device) {
  if (Desk* desk = state_->Find(device)) State::WakeAll(*desk);
}

Status DeviceDesk::Ready(const std::string& device) const {
  const Desk* desk = state_->Find(device);
  return desk == nullptr ? Status(NoSuchDevice(device)) : desk->worker->Ready();
}

std::vector<KnobFacts> DeviceDesk::Knobs() const {
  std::vector<KnobFacts> knobs;
  for (const Desk& desk : state_->all())
    for (KnobFacts& facts : desk.worker->Knobs()) knobs.push_back(std::move(facts));
  return knobs;
}

std::optional<KnobReport> DeviceDesk::Latest(const wire::KnobKey& knob) const {
  const Desk* desk = state_->Find(knob.device);
  return desk == nullptr ? std::nullopt : desk->worker->Latest(knob.knob);
}

bool DeviceDesk::WaitUntilSettled(const wire::KnobKey& knob, Seconds timeout) const {
  const Desk* desk = state_->Find(knob.device);
  if (desk == nullptr || state_->source() == nullptr) return false;
  return state_->WaitFor(timeout, [&] {
    return desk->worker->Settled(knob.knob, state_->source()->ClaimsOn(knob).version);
  });
}

bool DeviceDesk::WaitUntilReleased(Seconds timeout) const {
  return state_->WaitFor(timeout, [this] {
    return std::ranges::all_of(state_->all(),
                               [](const Desk& desk) { return desk.worker->AllReleased(); });
  });
}

Status DeviceDesk::BeginMaintenance(const std::string& device, Seconds duration) {
  const Desk* desk = state_->Find(device);
  if (desk == nullptr) return NoSuchDevice(device);
  desk->worker->BeginMaintenance(duration);
  if (desk->thread) desk->thread->Wake();
  std::optional<Status> free;
  state_->WaitFor(state_->options().longest_call, [desk, &free] {
    free = desk->worker->Free();
    return free.has_value();
  });
  if (free) return *std::move(free);
  return Error{ErrorCode::kUnavailable,
               fmt::format("the knobs of {} are not back yet: it is tried on", device)};
}

Status DeviceDesk::EndMaintenance(const std::string& device) {
  const Desk* desk = state_->Find(device);
  if (desk == nullptr) return NoSuchDevice(device);
  desk->worker->EndMaintenance();
  if (desk->thread) desk->thread->Wake();
  return Ok();
}

void DeviceDesk::SetForeignPolicy(ForeignPolicy policy) {
  {
    const std::lock_guard lock(state_->rules().mutex);
    state_->rules().foreign = policy;
  }
  for (Desk& desk : state_->all()) State::WakeAll(desk);
}

void DeviceDesk::SetBounds(std::map<wire::LeaseKnob, KnobBounds> bounds) {
  {
    const std::lock_guard lock(state_->rules().mutex);
    state_->rules().bounds = std::move(bounds);
  }
  for (Desk& desk : state_->all()) State::WakeAll(desk);
}

std::vector<DeviceDesk::DeviceState> DeviceDesk::Devices() const {
  std::vector<DeviceState> devices;
  for (const Desk& desk : state_->all()) devices.push_back(desk.worker->State());
  return devices;
}

}  // namespace zeus::daemon
