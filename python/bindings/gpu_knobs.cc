#include "python/bindings/gpu_knobs.h"

#include <pybind11/pybind11.h>

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/closeable.h"
#include "python/bindings/errors.h"
#include "zeus/base/clock.h"
#include "zeus/device/knobs/device_knob.h"
#include "zeus/device/knobs/guarded_knob.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/device/knobs/knob_actuator.h"
#include "zeus/device/knobs/knob_journal.h"

namespace zeus::python {
namespace {

using namespace std::chrono_literals;

// After a signal restored the knobs, the program gets this long to end before anything is set
// again.
constexpr Seconds kTimeToEndAfterSignal = 200ms;

Error Ending() {
  return {ErrorCode::kUnavailable, "nothing is set any more: the program is ending"};
}

// A clock that may move between two bounds. The knob's number is the upper one.
class ClockBetween final : public KnobActuator {
 public:
  ClockBetween(std::unique_ptr<KnobActuator> clock, Gpu& gpu, ClockDomain domain)
      : clock_(std::move(clock)), gpu_(gpu), domain_(domain) {}

  void SetLowest(Hertz lowest) { lowest_ = lowest; }

  const KnobDevice& device() const override { return clock_->device(); }
  KnobKind kind() const override { return clock_->kind(); }
  Result<KnobChoices> Choices() override { return clock_->Choices(); }
  Watts max_power() const override { return clock_->max_power(); }
  bool borrowed() const override { return clock_->borrowed(); }
  Result<KnobState> Read() override { return clock_->Read(); }
  Result<std::optional<Setting>> InForce() override { return clock_->InForce(); }
  Result<std::string> PutToDefault() override { return clock_->PutToDefault(); }
  void Prepare() override { clock_->Prepare(); }
  Status Apply(const Setting& highest) override {
    return gpu_.LockClockWithoutJournal(domain_, {.min = lowest_, .max = std::get<Hertz>(highest)});
  }
  Status PutBack(const KnobState& state) override { return clock_->PutBack(state); }
  std::optional<Joules> EpochMark() override { return clock_->EpochMark(); }

 private:
  const std::unique_ptr<KnobActuator> clock_;
  Gpu& gpu_;
  const ClockDomain domain_;
  Hertz lowest_{0};
};

// Persistence mode as a knob, so that a guard restores it. Its settings have no meaning.
class PersistenceKnob final : public Knob {
 public:
  explicit PersistenceKnob(Gpu& gpu) : gpu_(gpu), name_("persistence mode of " + gpu.name()) {}

  void Choose(Persistence mode) { chosen_ = mode; }

  const std::string& name() const override { return name_; }
  KnobKind kind() const override { return KnobKind::kGpuPowerLimit; }
  Result<std::vector<Setting>> Settings(const Setting&) override { return NoNumber(); }
  Result<Setting> Current() override { return NoNumber(); }
  Watts max_power() const override { return Watts(0); }

  Status Set(const Setting&) override {
    ZEUS_TRY(const Persistence mode, gpu_.CurrentPersistence());
    if (mode == chosen_) return Ok();
    ZEUS_RETURN_IF_ERROR(gpu_.SetPersistence(chosen_));
    if (!before_) before_ = mode;
    return Ok();
  }

  Status Restore() override {
    if (!before_) return Ok();
    ZEUS_RETURN_IF_ERROR(gpu_.SetPersistence(*before_));
    before_.reset();
    return Ok();
  }

 private:
  Error NoNumber() const { return {ErrorCode::kNotSupported, "the " + name_ + " is no number"}; }

  Gpu& gpu_;
  const std::string name_;
  Persistence chosen_ = Persistence::kOff;
  std::optional<Persistence> before_;
};

// A knob that was set. Members are destroyed in reverse order: restoring needs the GPU.
struct Turned {
  std::shared_ptr<Gpu> gpu;
  std::unique_ptr<Knob> knob;
  std::unique_ptr<KnobGuard> guard = std::make_unique<KnobGuard>(*knob);
  bool held = false;
};

// Identifies the device itself, because each discovery may number devices differently.
std::string KnobKey(const Gpu& gpu, const char* what) {
  const GpuIdentity& identity = gpu.identity();
  const std::string& id = !identity.uuid.empty()          ? identity.uuid
                          : !identity.pci_address.empty() ? identity.pci_address
                                                          : gpu.name();
  return id + "/" + what;
}

}  // namespace

class GpuKnobs::State {
 public:
  Status SetPowerLimit(const std::shared_ptr<Gpu>& gpu, Watts limit, Ceiling ceiling) {
    const std::lock_guard lock(mutex_);
    const std::string key = KnobKey(*gpu, KnobKindName(KnobKind::kGpuPowerLimit));
    if (!turned_.contains(key)) {
      ZEUS_TRY(auto actuator, MakeActuator(KnobKind::kGpuPowerLimit, *gpu));
      ZEUS_RETURN_IF_ERROR(Add(key, gpu, std::move(actuator)));
    }
    return Turn(key, limit, ceiling);
  }

  Status LockClock(const std::shared_ptr<Gpu>& gpu, ClockDomain domain, ClockRange range,
                   Ceiling ceiling) {
    const KnobKind kind = ClockKnob(domain);
    const std::lock_guard lock(mutex_);
    const std::string key = KnobKey(*gpu, KnobKindName(kind));
    if (!turned_.contains(key)) {
      ZEUS_TRY(auto clock, MakeActuator(kind, *gpu));
      auto between = std::make_unique<ClockBetween>(std::move(clock), *gpu, domain);
      ClockBetween* const added = between.get();
      ZEUS_RETURN_IF_ERROR(Add(key, gpu, std::move(between)));
      clocks_.emplace(key, added);
    }
    clocks_.at(key)->SetLowest(range.min);
    return Turn(key, range.max, ceiling);
  }

  Status SetPersistence(const std::shared_ptr<Gpu>& gpu, Persistence mode) {
    const std::lock_guard lock(mutex_);
    const std::string key = KnobKey(*gpu, "persistence");
    if (!turned_.contains(key)) {
      auto knob = std::make_unique<PersistenceKnob>(*gpu);
      modes_.emplace(key, knob.get());
      turned_.emplace(key, Turned{gpu, std::move(knob)});
    }
    modes_.at(key)->Choose(mode);
    return Turn(key, Watts(0), Ceiling::kAsFound);
  }

  Status Restore(const Gpu& gpu, KnobKind kind) {
    const std::lock_guard lock(mutex_);
    const auto found = turned_.find(KnobKey(gpu, KnobKindName(kind)));
    if (found == turned_.end()) return Ok();
    found->second.held = false;
    return found->second.guard->Restore();
  }

  bool Holds(const Gpu& gpu, KnobKind kind) {
    const std::lock_guard lock(mutex_);
    const auto found = turned_.find(KnobKey(gpu, KnobKindName(kind)));
    return found != turned_.end() && found->second.held && !found->second.guard->ended();
  }

  // Checks that no other program holds the knob, and restores what a killed program left.
  Status CheckFree(Gpu& gpu, KnobKind kind) {
    const std::lock_guard lock(mutex_);
    ZEUS_TRY(KnobJournal* const journal, JournalFor(gpu));
    if (journal == nullptr) return Ok();
    const auto actuator = MakeActuator(kind, gpu);
    if (!actuator.ok()) return Ok();  // A knob that cannot be set cannot be held.
    const auto repaired = journal->PutBackLeftover(*actuator.value());
    return repaired.ok() ? Ok() : Status(repaired.error());
  }

  void End() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    turned_.clear();
  }

  static KnobKind ClockKnob(ClockDomain domain) {
    return domain == ClockDomain::kGraphics ? KnobKind::kGraphicsClock : KnobKind::kMemoryClock;
  }

 private:
  // The caller must hold the lock.
  Result<KnobJournal*> JournalFor(Gpu& gpu) {
    if (!gpu.NeedsJournal()) return nullptr;
    if (!journal_) {
      ZEUS_TRY(auto folder, KnobFolder());
      journal_ = std::make_unique<KnobJournal>(clock_, std::move(folder));
    }
    return journal_.get();
  }

  // The caller must hold the lock.
  Status Add(const std::string& key, const std::shared_ptr<Gpu>& gpu,
             std::unique_ptr<KnobActuator> actuator) {
    ZEUS_TRY(KnobJournal* const journal, JournalFor(*gpu));
    auto knob = std::make_unique<DeviceKnob>(std::move(actuator), journal,
                                             KnobPolicyOfMachine().Allowed(Ceiling::kAsFound));
    knobs_.emplace(key, knob.get());
    turned_.emplace(key, Turned{gpu, std::move(knob)});
    return Ok();
  }

  // The caller must hold the lock.
  Status Turn(const std::string& key, const Setting& setting, Ceiling ceiling) {
    if (over_) return Ending();
    Turned& turned = turned_.at(key);
    if (ceiling == Ceiling::kOfDevice) knobs_.at(key)->LiftCeiling();
    if (turned.guard->ended()) {
      // A signal restored everything and the program continues, as a notebook does after Ctrl-C.
      clock_.SleepFor(kTimeToEndAfterSignal);
      turned.guard = std::make_unique<KnobGuard>(*turned.knob);
      turned.held = false;
    }
    ZEUS_RETURN_IF_ERROR(turned.guard->Set(setting));
    turned.held = true;
    return Ok();
  }

  std::mutex mutex_;
  SystemClock clock_;
  std::unique_ptr<KnobJournal> journal_;
  std::map<std::string, Turned> turned_;
  std::map<std::string, DeviceKnob*> knobs_;
  std::map<std::string, ClockBetween*> clocks_;
  std::map<std::string, PersistenceKnob*> modes_;
  bool over_ = false;
};

GpuKnobs::GpuKnobs() : state_(std::make_shared<State>()) {}

// Processes that multiprocessing forks end without running `atexit` handlers.
void GpuKnobs::RestoreAtWorkerExit() {
  namespace py = pybind11;
  const py::object util =
      py::module_::import("sys").attr("modules").attr("get")("multiprocessing.util");
  if (util.is_none()) return;
  util.attr("Finalize")(py::none(), py::cpp_function([] { OfThisProcess().Close(); }),
                        py::arg("exitpriority") = 0);
}

GpuKnobs& GpuKnobs::OfThisProcess() {
  // Never destroyed: Closeable::CloseAll() closes it.
  static GpuKnobs* knobs = nullptr;
  if (knobs != nullptr && knobs->InForkedChild()) knobs->Close();
  // The end of a simulated node closes it, too, while the program continues.
  if (knobs == nullptr || (knobs->closed() && !Ended())) {
    knobs = new GpuKnobs();
    RestoreAtWorkerExit();
  }
  return *knobs;
}

std::shared_ptr<GpuKnobs::State> GpuKnobs::state() const {
  if (!state_) throw Failure(Ending(), Family::kGpu);
  return state_;
}

Status GpuKnobs::SetPowerLimit(const std::shared_ptr<Gpu>& gpu, Watts limit, Ceiling ceiling) {
  const auto knobs = state();
  const WithoutGil released;
  return knobs->SetPowerLimit(gpu, limit, ceiling);
}

Status GpuKnobs::LockClock(const std::shared_ptr<Gpu>& gpu, ClockDomain domain, ClockRange range,
                           Ceiling ceiling) {
  const auto knobs = state();
  const WithoutGil released;
  return knobs->LockClock(gpu, domain, range, ceiling);
}

Status GpuKnobs::SetPersistence(const std::shared_ptr<Gpu>& gpu, Persistence mode) {
  const auto knobs = state();
  const WithoutGil released;
  return knobs->SetPersistence(gpu, mode);
}

Status GpuKnobs::Restore(const std::shared_ptr<Gpu>& gpu, KnobKind kind) {
  const auto knobs = state();
  const WithoutGil released;
  return knobs->Restore(*gpu, kind);
}

bool GpuKnobs::Holds(const std::shared_ptr<Gpu>& gpu, KnobKind kind) {
  const auto knobs = state();
  const WithoutGil released;
  return knobs->Holds(*gpu, kind);
}

Status GpuKnobs::ResetPowerLimit(const std::shared_ptr<Gpu>& gpu) {
  ZEUS_RETURN_IF_ERROR(Restore(gpu, KnobKind::kGpuPowerLimit));
  const auto knobs = state();
  const WithoutGil released;
  ZEUS_RETURN_IF_ERROR(knobs->CheckFree(*gpu, KnobKind::kGpuPowerLimit));
  ZEUS_TRY(const PowerLimit limit, gpu->CurrentPowerLimit());
  if (limit.requested == limit.default_limit) return Ok();
  ZEUS_RETURN_IF_ERROR(gpu->SetPowerLimitWithoutJournal(limit.default_limit));
  return Ok();
}

Status GpuKnobs::ResetClock(const std::shared_ptr<Gpu>& gpu, ClockDomain domain) {
  ZEUS_RETURN_IF_ERROR(Restore(gpu, State::ClockKnob(domain)));
  const auto knobs = state();
  const WithoutGil released;
  ZEUS_RETURN_IF_ERROR(knobs->CheckFree(*gpu, State::ClockKnob(domain)));
  return gpu->ResetClock(domain);
}

void GpuKnobs::DoClose() {
  const auto state = std::exchange(state_, nullptr);
  const WithoutGil released;
  state->End();
}

void GpuKnobs::Abandon() {
  static auto* const abandoned = new std::vector<std::shared_ptr<State>>();
  abandoned->push_back(std::move(state_));
}

}  // namespace zeus::python
