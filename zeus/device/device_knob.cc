#include "zeus/device/device_knob.h"

#include <fmt/format.h>

#include <utility>

#include "zeus/base/fork.h"
#include "zeus/base/log.h"
#include "zeus/device/cpu_actuator.h"
#include "zeus/device/gpu_actuators.h"

namespace zeus {
namespace {

unsigned WatchedForkGeneration() {
  WatchForks();
  return ForkGeneration();
}

}  // namespace

std::string KnobName(KnobKind kind, const std::string& device) {
  if (!IsClock(kind)) return "power limit of " + device;
  const char* const domain = kind == KnobKind::kGraphicsClock ? "graphics" : "memory";
  return fmt::format("{} clock of {}", domain, device);
}

Result<std::unique_ptr<DeviceKnob>> DeviceKnob::Of(KnobKind kind, Gpu& gpu, KnobJournal* journal) {
  ZEUS_TRY(auto actuator, MakeActuator(kind, gpu));
  return std::make_unique<DeviceKnob>(std::move(actuator), journal);
}

Result<std::unique_ptr<DeviceKnob>> DeviceKnob::Of(CpuPackage& cpu, KnobJournal* journal) {
  ZEUS_TRY(auto actuator, MakeActuator(cpu));
  return std::make_unique<DeviceKnob>(std::move(actuator), journal);
}

DeviceKnob::DeviceKnob(std::unique_ptr<KnobActuator> actuator, KnobJournal* journal)
    : actuator_(std::move(actuator)),
      journal_(journal),
      name_(KnobName(actuator_->kind(), actuator_->device().name)),
      fork_generation_(WatchedForkGeneration()) {}

DeviceKnob::~DeviceKnob() {
  if (const Status restored = Restore(); !restored.ok())
    log::Failure("{}", restored.error().message);
}

Result<std::vector<Setting>> DeviceKnob::Settings(const Setting& stride) {
  auto choices = Choices();
  if (!choices.ok()) return std::move(choices).error().While(name_);
  return Spread(choices.value(), stride);
}

Result<Setting> DeviceKnob::Current() {
  const auto state = actuator_->Read();
  if (!state.ok()) return state.error().While(name_);
  if (state.value().setting) return *state.value().setting;
  const auto choices = Choices();
  if (!choices.ok()) return choices.error().While(name_);
  return choices.value().highest;
}

Status DeviceKnob::Set(const Setting& setting) {
  if (setting.index() != SettingOf(kind(), 0).index()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the {} cannot be {}", name_, ToText(setting))};
  }
  if (InForkedChild()) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("the {} belongs to the process that forked this one: make a knob "
                             "after fork()",
                             name_)};
  }
  const std::lock_guard lock(mutex_);
  const bool first = !before_;
  if (first) ZEUS_RETURN_IF_ERROR(Take());
  Status set = actuator_->Apply(setting);
  if (set.ok()) return set;
  if (first) Abandon();
  return std::move(set).error().While(name_);
}

Status DeviceKnob::Take() {
  auto state = journal_ != nullptr ? journal_->Take(*actuator_) : actuator_->Read();
  if (!state.ok()) return std::move(state).error().While(name_);
  before_ = std::move(state).value();
  actuator_->Prepare();
  return Ok();
}

// The first change failed. Where setting is refused, nothing was changed and nothing can be put
// back; else what was changed all the same stays remembered until it is.
void DeviceKnob::Abandon() {
  const Status put_back = actuator_->PutBack(*before_);
  const bool refused = !put_back.ok() && (put_back.error().code == ErrorCode::kNotSupported ||
                                          put_back.error().code == ErrorCode::kPermissionDenied);
  if (!put_back.ok() && !refused) return;
  if (const Status forgotten = Forget(); !forgotten.ok())
    log::Warning("{}", forgotten.error().message);
}

Status DeviceKnob::Restore() {
  if (InForkedChild()) return Ok();
  const std::lock_guard lock(mutex_);
  if (!before_) return Ok();
  Status put_back = actuator_->PutBack(*before_);
  if (!put_back.ok()) return std::move(put_back).error().While("restore the " + name_);
  return Forget();
}

Status DeviceKnob::Forget() {
  before_.reset();
  return journal_ != nullptr ? journal_->Release(*actuator_) : Ok();
}

// Asked before any lock is taken: a thread that is not here may have held it during fork().
bool DeviceKnob::InForkedChild() const { return ForkGeneration() != fork_generation_; }

}  // namespace zeus
