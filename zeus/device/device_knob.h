#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/device/cpu_package.h"
#include "zeus/device/gpu.h"
#include "zeus/device/knob.h"
#include "zeus/device/knob_actuator.h"
#include "zeus/device/knob_journal.h"

namespace zeus {

// The knob of one device: remembers what was there before the first Set() and puts it back at the
// latest on destruction. With a journal it also survives a SIGKILL of this process, and nobody else
// turns it meanwhile. It belongs to the process that made it: in a fork()ed child it does nothing.
// Device and journal must outlive it.
class DeviceKnob final : public Knob {
 public:
  static Result<std::unique_ptr<DeviceKnob>> Of(KnobKind kind, Gpu& gpu,
                                                KnobJournal* journal = nullptr);
  static Result<std::unique_ptr<DeviceKnob>> Of(CpuPackage& cpu, KnobJournal* journal = nullptr);

  DeviceKnob(std::unique_ptr<KnobActuator> actuator, KnobJournal* journal);
  ~DeviceKnob() override;
  DeviceKnob(const DeviceKnob&) = delete;
  DeviceKnob& operator=(const DeviceKnob&) = delete;

  const std::string& name() const override { return name_; }
  KnobKind kind() const override { return actuator_->kind(); }
  const KnobDevice& device() const { return actuator_->device(); }

  Result<KnobChoices> Choices() { return actuator_->Choices(); }
  Result<std::vector<Setting>> Settings(const Setting& stride) override;
  Result<Setting> Current() override;
  Watts max_power() const override { return actuator_->max_power(); }

  Status Set(const Setting& setting) override;
  Status Restore() override;

  // Whether this process is a fork()ed child of the one that made it.
  bool InForkedChild() const;

 private:
  // Under the lock.
  Status Take();
  void Abandon();
  Status Forget();

  const std::unique_ptr<KnobActuator> actuator_;
  KnobJournal* const journal_;
  const std::string name_;
  const unsigned fork_generation_;
  std::mutex mutex_;
  std::optional<KnobState> before_;  // Guarded by mutex_; nullopt while nothing is changed.
};

}  // namespace zeus
