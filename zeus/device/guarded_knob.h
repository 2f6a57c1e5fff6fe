#pragma once

#include <memory>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/device/cpu_package.h"
#include "zeus/device/device_knob.h"
#include "zeus/device/gpu.h"
#include "zeus/device/knob.h"
#include "zeus/device/knob_guard.h"
#include "zeus/device/knob_journal.h"

namespace zeus {

// The knob of one device as a program should turn it: noted in the journal of this user, so that
// the next start or `zeus knobs restore` repairs what a SIGKILL left, and put back on every other
// end of the program (see KnobGuard). What killed programs left is put back first. The device must
// outlive it.
class GuardedKnob final : public Knob {
 public:
  static Result<std::unique_ptr<GuardedKnob>> Of(KnobKind kind, Gpu& gpu,
                                                 Ceiling ceiling = Ceiling::kAsFound);
  static Result<std::unique_ptr<GuardedKnob>> Of(CpuPackage& cpu,
                                                 Ceiling ceiling = Ceiling::kAsFound);

  const std::string& name() const override { return knob_->name(); }
  KnobKind kind() const override { return knob_->kind(); }
  Result<std::vector<Setting>> Settings(const Setting& stride) override {
    return knob_->Settings(stride);
  }
  Result<Setting> Current() override { return knob_->Current(); }
  Watts max_power() const override { return knob_->max_power(); }
  Status Set(const Setting& setting) override { return guard_->Set(setting); }
  Status CheckInForce(const Setting& setting) override { return knob_->CheckInForce(setting); }
  Status Restore() override { return guard_->Restore(); }

 private:
  GuardedKnob() = default;
  Status OpenJournal();
  void Guard(std::unique_ptr<DeviceKnob> knob);

  // These end in reverse order: what is put back needs the journal.
  SystemClock clock_;
  std::unique_ptr<KnobJournal> journal_;  // Null for devices that end with the process.
  std::unique_ptr<DeviceKnob> knob_;
  std::unique_ptr<KnobGuard> guard_;
};

}  // namespace zeus
