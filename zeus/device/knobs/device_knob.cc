#include "zeus/device/knobs/device_knob.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/base/process.h"
#include "zeus/device/knobs/guarded_knob.h"
#include "zeus/device/knobs/knob_actuator.h"

namespace zeus {
namespace {

unsigned WatchedForkGeneration() {
  WatchForks();
  return ForkGeneration();
}

}  // namespace

Result<std::unique_ptr<DeviceKnob>> DeviceKnob::Of(KnobKind kind, Gpu& gpu, KnobJournal& journal,
                                                   Ceiling ceiling) {
  ZEUS_TRY(auto actuator, MakeActuator(kind, gpu));
  return std::make_unique<DeviceKnob>(std::move(actuator), &journal, ceiling);
}

Result<std::unique_ptr<DeviceKnob>> DeviceKnob::Of(CpuPackage& cpu, KnobJournal& journal,
                                                   Ceiling ceiling) {
  ZEUS_TRY(auto actuator, MakeActuator(cpu));
  return std::make_unique<DeviceKnob>(std::move(actuator), &journal, ceiling);
}

Result<std::unique_ptr<DeviceKnob>> DeviceKnob::WithoutJournal(KnobKind kind, Gpu& gpu,
                                                               Ceiling ceiling) {
  ZEUS_TRY(auto actuator, MakeActuator(kind, gpu));
  return std::make_unique<DeviceKnob>(std::move(actuator), nullptr, ceiling);
}

Result<std::unique_ptr<DeviceKnob>> DeviceKnob::WithoutJournal(CpuPackage& cpu, Ceiling ceiling) {
  ZEUS_TRY(auto actuator, MakeActuator(cpu));
  return std::make_unique<DeviceKnob>(std::move(actuator), nullptr, ceiling);
}

DeviceKnob::DeviceKnob(std::unique_ptr<KnobActuator> actuator, KnobJournal* journal,
                       Ceiling ceiling)
    : actuator_(std::move(actuator)),
      journal_(actuator_->borrowed() ? nullptr : journal),
      name_(KnobName(actuator_->kind(), actuator_->device().name)),
      fork_generation_(WatchedForkGeneration()),
      ceiling_(ceiling) {}

DeviceKnob::~DeviceKnob() {
  if (const Status restored = Restore(); !restored.ok()) LogFailedRestore(restored.error());
}

// --- reading ---

Result<KnobChoices> DeviceKnob::Choices() {
  ZEUS_TRY(KnobChoices choices, actuator_->Choices());
  std::optional<Setting> ceiling;
  {
    const std::lock_guard lock(mutex_);
    if (ceiling_ == Ceiling::kOfDevice) return choices;
    if (turned_) {
      ceiling = turned_->ceiling;
    } else {
      ZEUS_TRY(ceiling, actuator_->InForce());
    }
  }
  return ceiling ? UpTo(*ceiling, std::move(choices)) : choices;
}

Result<std::vector<Setting>> DeviceKnob::Settings(const Setting& stride) {
  auto choices = Choices();
  if (!choices.ok()) return std::move(choices).error().While(name_);
  return Spread(choices.value(), stride);
}

Result<Setting> DeviceKnob::Current() {
  if (!IsClock(kind())) {
    const auto in_force = actuator_->InForce();
    if (!in_force.ok()) return in_force.error().While(name_);
    if (in_force.value()) return *in_force.value();
  }
  const auto choices = Choices();
  if (!choices.ok()) return choices.error().While(name_);
  return choices.value().highest;
}

Status DeviceKnob::CheckInForce(const Setting& setting) {
  if (IsClock(kind())) return Ok();  // A GPU that throttles is below it for other reasons.
  const auto in_force = actuator_->InForce();
  if (!in_force.ok()) return in_force.error().While(name_);
  if (!in_force.value() || SameSetting(*in_force.value(), setting)) return Ok();
  return Error{ErrorCode::kUnavailable, fmt::format("the {} in force is {} instead of {}", name_,
                                                    ToText(*in_force.value()), ToText(setting))};
}

// --- turning ---

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
  const bool first = !turned_;
  ZEUS_RETURN_IF_ERROR(first ? Take(setting) : AdoptWhatOthersSet());
  Status set = CheckCeiling(setting);
  if (!set.ok()) {
    if (first) Abandon();
    return set;
  }
  set = TurnTo(setting);
  if (set.ok()) return set;
  if (first) Abandon();
  return std::move(set).error().While(name_);
}

Status DeviceKnob::Take(const Setting& first) {
  auto state = journal_ != nullptr ? journal_->Take(*actuator_, first) : actuator_->Read();
  if (!state.ok()) return std::move(state).error().While(name_);
  Turned turned{.before = std::move(state).value(), .ceiling = {}, .ours = {first}};
  if (ceiling_ == Ceiling::kAsFound) {
    turned.ceiling = turned.before.setting;
    // For a clock, a lock made by another program is the only sign of a ceiling.
    if (!turned.ceiling)
      if (const auto locked = actuator_->InForce(); locked.ok()) turned.ceiling = locked.value();
  }
  turned_ = std::move(turned);
  actuator_->Prepare();
  return Ok();
}

// The journal learns of the setting before the device does: a process that finds either of the two
// after a SIGKILL knows that it is ours.
Status DeviceKnob::TurnTo(const Setting& setting) {
  const bool known = SameSetting(turned_->ours.back(), setting);
  if (!known) {
    // One that failed before may be in force as well as the one before it.
    std::erase_if(turned_->ours, [&](const Setting& ours) { return SameSetting(ours, setting); });
    turned_->ours.push_back(setting);
    // Drivers do not report locked clocks, so a noted one could not be compared with the present
    // one.
    if (journal_ != nullptr && !IsClock(kind()))
      ZEUS_RETURN_IF_ERROR(journal_->Note(*actuator_, turned_->before, turned_->ours));
  }
  ZEUS_RETURN_IF_ERROR(actuator_->Apply(setting));
  turned_->ours = {setting};
  return Ok();
}

// Respects a setting that another program made meanwhile (nvidia-smi, a driver reload): Restore()
// returns to it, and no higher setting is made from now on.
Status DeviceKnob::AdoptWhatOthersSet() {
  if (IsClock(kind())) return Ok();        // Drivers do not report locked clocks.
  if (actuator_->borrowed()) return Ok();  // The lender decides whose setting holds.
  const auto present = actuator_->Read();
  if (!present.ok()) return present.error().While(name_);
  const std::optional<Setting>& setting = present.value().setting;
  if (!setting) return Ok();
  const auto is_present = [&](const Setting& ours) { return SameSetting(ours, *setting); };
  if (std::ranges::any_of(turned_->ours, is_present)) return Ok();
  log::Warning("somebody else set the {} to {} meanwhile: that is what it will be put back to",
               name_, ToText(*setting));
  turned_->before.setting = setting;
  if (turned_->ceiling) turned_->ceiling = std::min(*turned_->ceiling, *setting);
  return Ok();
}

Status DeviceKnob::CheckCeiling(const Setting& setting) const {
  const std::optional<Setting>& ceiling = turned_->ceiling;
  if (!ceiling || setting <= *ceiling || SameSetting(setting, *ceiling)) return Ok();
  const auto choices = actuator_->Choices();
  if (choices.ok() && setting > choices.value().highest)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the {} goes up to {}, not to {}", name_,
                             ToText(choices.value().highest), ToText(setting))};
  return Error{ErrorCode::kConflict,
               fmt::format("the {} was found at {} and is not raised to {}: allow it with "
                           "--may-raise (Ceiling::kOfDevice, may_raise=True)",
                           name_, ToText(*ceiling), ToText(setting))};
}

// The first change failed. Where setting is refused, nothing was changed and nothing can be put
// back; else what was changed all the same stays remembered until it is.
void DeviceKnob::Abandon() {
  const auto put_back = PutBackIfOurs(*actuator_, turned_->before, turned_->ours);
  const bool refused = !put_back.ok() && (put_back.error().code == ErrorCode::kNotSupported ||
                                          put_back.error().code == ErrorCode::kPermissionDenied);
  if (!put_back.ok() && !refused) return;
  if (const Status forgotten = Forget(); !forgotten.ok())
    log::Warning("{}", forgotten.error().message);
}

Status DeviceKnob::Restore() {
  if (InForkedChild()) return Ok();
  const std::lock_guard lock(mutex_);
  if (!turned_) return Ok();
  auto put_back = PutBackIfOurs(*actuator_, turned_->before, turned_->ours);
  if (!put_back.ok()) {
    const auto present = actuator_->Read();
    return std::move(put_back).error().While(fmt::format(
        "restore the {}, which stays {} ({} before; zeus knobs restore puts it back)", name_,
        present.ok() && present.value().setting ? "at " + ToText(*present.value().setting)
                                                : "changed",
        ToText(turned_->before)));
  }
  if (put_back.value() == KnobReturn::kNotOurs)
    log::Warning("somebody else set the {} meanwhile: it is left as it is, and was {} before",
                 name_, ToText(turned_->before));
  ForgetFailedRestores();
  return Forget();
}

Status DeviceKnob::Forget() {
  turned_.reset();
  return journal_ != nullptr ? journal_->Release(*actuator_) : Ok();
}

void DeviceKnob::LiftCeiling() {
  const std::lock_guard lock(mutex_);
  ceiling_ = Ceiling::kOfDevice;
  if (turned_) turned_->ceiling.reset();
}

// Asked before any lock is taken: a thread that is not here may have held it during fork().
bool DeviceKnob::InForkedChild() const { return ForkGeneration() != fork_generation_; }

}  // namespace zeus
