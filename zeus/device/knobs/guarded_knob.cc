#include "zeus/device/knobs/guarded_knob.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/base/process.h"
#include "zeus/base/termination_watch.h"
#include "zeus/device/knobs/device_knob.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/device/knobs/knob_journal.h"

namespace zeus {

// The guards of this process. A process ends once, for all of them, so there is one registry; it is
// never destroyed, because std::exit() may need it after static objects are gone. A fork()ed child
// makes a registry of its own with its first guard: the parent's thread does not exist there, and
// the parent's mutex may be locked for ever. Thread-safe.
class KnobGuards {
 public:
  static KnobGuards& Instance() {
    static std::atomic<KnobGuards*> instance{nullptr};
    WatchForks();
    KnobGuards* present = instance;
    if (present == nullptr || present->fork_generation_ != ForkGeneration()) {
      auto* const fresh = new KnobGuards(ForkGeneration());
      if (instance.compare_exchange_strong(present, fresh)) {
        present = fresh;
        WatchEnds();
      } else {
        delete fresh;
      }
    }
    return *present;
  }

  void Add(KnobGuard& guard) {
    const std::lock_guard lock(mutex_);
    guards_.push_back(&guard);
    if (watch_ != nullptr) return watch_->Arm();
    auto watch = TerminationWatch::Start([this] { EndBySignal(); });
    if (watch.ok()) {
      watch_ = std::move(watch).value();
    } else {
      log::Warning("{}: a signal would leave the {} changed until the next start",
                   watch.error().message, guard.name());
    }
  }

  // Waits for an end that is under way.
  void Remove(KnobGuard& guard) {
    const std::lock_guard lock(mutex_);
    std::erase(guards_, &guard);
  }

 private:
  explicit KnobGuards(unsigned fork_generation) : fork_generation_(fork_generation) {}

  // Once: a fork()ed child inherits it.
  static void WatchEnds() {
    static std::atomic<bool> watching{false};
    if (watching.exchange(true)) return;
    static std::atomic<std::terminate_handler> before{nullptr};
    std::atexit([] { Instance().EndAll(); });
    before = std::set_terminate([] {
      Instance().EndAll();
      if (const std::terminate_handler earlier = before; earlier != nullptr) earlier();
      std::abort();
    });
  }

  void EndAll() {
    const std::lock_guard lock(mutex_);
    for (KnobGuard* guard : guards_) guard->End();
  }

  void EndBySignal() {
    const std::lock_guard lock(mutex_);
    for (KnobGuard* guard : guards_) guard->End();
    for (const KnobGuard* guard : guards_)
      if (guard->afterwards_) guard->afterwards_();
  }

  std::mutex mutex_;
  std::vector<KnobGuard*> guards_;           // Guarded by mutex_.
  std::unique_ptr<TerminationWatch> watch_;  // Guarded by mutex_.
  const unsigned fork_generation_;
};

KnobGuard::KnobGuard(Knob& knob, std::function<void()> afterwards)
    : knob_(knob),
      afterwards_(std::move(afterwards)),
      fork_generation_((WatchForks(), ForkGeneration())) {
  KnobGuards::Instance().Add(*this);
}

KnobGuard::~KnobGuard() {
  if (ForkGeneration() != fork_generation_) return;
  // A signal that comes meanwhile must find this guard, and wait for it, before it ends the
  // program.
  RestoreOrLog();
  KnobGuards::Instance().Remove(*this);
}

Status KnobGuard::Set(const Setting& setting) {
  const auto over = [this] {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("the {} stays as it was: the program is ending", name())};
  };
  if (ended_) return over();
  const std::lock_guard lock(mutex_);
  if (ended_) return over();
  return knob_.Set(setting);
}

Status KnobGuard::Restore() {
  if (ForkGeneration() != fork_generation_) return Ok();
  const std::lock_guard lock(mutex_);
  return knob_.Restore();
}

// Once: a handler of the program that calls exit() may have interrupted the holder of the lock.
void KnobGuard::End() {
  if (ended_.exchange(true)) return;
  RestoreOrLog();
}

void KnobGuard::RestoreOrLog() {
  if (const Status restored = Restore(); !restored.ok()) LogFailedRestore(restored.error());
}

// --- failures that were logged ---

namespace {

// The failures to restore that this process has logged.
class LoggedFailures {
 public:
  static LoggedFailures& Instance() {
    // Never destroyed: knobs may be restored while the program exits.
    static auto* const instance = new LoggedFailures;
    return *instance;
  }

  // Returns whether the message is new.
  bool Add(const std::string& message) {
    const std::lock_guard lock(mutex_);
    return messages_.insert(message).second;
  }

  void Clear() {
    const std::lock_guard lock(mutex_);
    messages_.clear();
  }

 private:
  std::mutex mutex_;
  std::set<std::string> messages_;  // Guarded by mutex_.
};

}  // namespace

void LogFailedRestore(const Error& error) {
  if (LoggedFailures::Instance().Add(error.message)) log::Failure("{}", error.message);
}

void ForgetFailedRestores() { LoggedFailures::Instance().Clear(); }

// --- a knob with its journal and its guard ---

GuardedKnob::GuardedKnob() = default;
GuardedKnob::~GuardedKnob() = default;

Result<std::unique_ptr<GuardedKnob>> GuardedKnob::Of(KnobKind kind, Gpu& gpu, Ceiling ceiling) {
  std::unique_ptr<GuardedKnob> guarded(new GuardedKnob());
  const Ceiling allowed = KnobPolicyOfMachine().Allowed(ceiling);
  std::unique_ptr<DeviceKnob> knob;
  if (!gpu.NeedsJournal()) {
    ZEUS_TRY(knob, DeviceKnob::WithoutJournal(kind, gpu, allowed));
  } else {
    ZEUS_RETURN_IF_ERROR(guarded->OpenJournal());
    ZEUS_TRY(knob, DeviceKnob::Of(kind, gpu, *guarded->journal_, allowed));
  }
  guarded->Guard(std::move(knob));
  return guarded;
}

Result<std::unique_ptr<GuardedKnob>> GuardedKnob::Of(CpuPackage& cpu, Ceiling ceiling) {
  std::unique_ptr<GuardedKnob> guarded(new GuardedKnob());
  const Ceiling allowed = KnobPolicyOfMachine().Allowed(ceiling);
  std::unique_ptr<DeviceKnob> knob;
  if (cpu.lender() != nullptr) {
    ZEUS_TRY(knob, DeviceKnob::WithoutJournal(cpu, allowed));
  } else {
    ZEUS_RETURN_IF_ERROR(guarded->OpenJournal());
    ZEUS_TRY(knob, DeviceKnob::Of(cpu, *guarded->journal_, allowed));
  }
  guarded->Guard(std::move(knob));
  return guarded;
}

const std::string& GuardedKnob::name() const { return knob_->name(); }
KnobKind GuardedKnob::kind() const { return knob_->kind(); }
Result<std::vector<Setting>> GuardedKnob::Settings(const Setting& stride) {
  return knob_->Settings(stride);
}
Result<Setting> GuardedKnob::Current() { return knob_->Current(); }
Watts GuardedKnob::max_power() const { return knob_->max_power(); }
Status GuardedKnob::Set(const Setting& setting) { return guard_->Set(setting); }
Status GuardedKnob::CheckInForce(const Setting& setting) { return knob_->CheckInForce(setting); }
Status GuardedKnob::Restore() { return guard_->Restore(); }

Status GuardedKnob::OpenJournal() {
  ZEUS_TRY(std::filesystem::path folder, KnobFolder());
  journal_ = std::make_unique<KnobJournal>(clock_, std::move(folder));
  return Ok();
}

void GuardedKnob::Guard(std::unique_ptr<DeviceKnob> knob) {
  knob_ = std::move(knob);
  guard_ = std::make_unique<KnobGuard>(*knob_);
}

Result<ScopedPowerLimit> ScopedPowerLimit::Set(Gpu& gpu, Watts limit, Ceiling ceiling) {
  ZEUS_TRY(auto knob, GuardedKnob::Of(KnobKind::kGpuPowerLimit, gpu, ceiling));
  ZEUS_RETURN_IF_ERROR(knob->Set(limit));
  return ScopedPowerLimit(std::move(knob));
}

}  // namespace zeus
