#include "zeus/device/knobs/guarded_knob.h"

#include <filesystem>
#include <utility>

#include "zeus/device/knobs/device_knob.h"
#include "zeus/device/knobs/knob_guard.h"
#include "zeus/device/knobs/knob_journal.h"
#include "zeus/device/knobs/knob_policy.h"

namespace zeus {

GuardedKnob::GuardedKnob() = default;
GuardedKnob::~GuardedKnob() = default;

Result<std::unique_ptr<GuardedKnob>> GuardedKnob::Of(KnobKind kind, Gpu& gpu, Ceiling ceiling) {
  std::unique_ptr<GuardedKnob> guarded(new GuardedKnob());
  const Ceiling allowed = KnobPolicyOfMachine().Allowed(ceiling);
  std::unique_ptr<DeviceKnob> knob;
  if (gpu.EndsWithProcess()) {
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
  ZEUS_RETURN_IF_ERROR(guarded->OpenJournal());
  const Ceiling allowed = KnobPolicyOfMachine().Allowed(ceiling);
  ZEUS_TRY(auto knob, DeviceKnob::Of(cpu, *guarded->journal_, allowed));
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
