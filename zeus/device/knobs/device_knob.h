#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/device/cpu_package.h"
#include "zeus/device/gpu.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/device/knobs/knob_actuator.h"
#include "zeus/device/knobs/knob_journal.h"

namespace zeus {

// The knob of one device: remembers the setting before the first Set() and restores it, on
// destruction at the latest. A journal restores it even after a SIGKILL of this process, and keeps
// other processes of Zeus from turning it meanwhile; a KnobGuard restores it after other signals
// (GuardedKnob has both). It is never turned above its ceiling. A setting that another program
// makes meanwhile counts as found from then on. The knob belongs to the process that made it: in a
// fork()ed child it does nothing. Device and journal must outlive it.
class DeviceKnob final : public Knob {
 public:
  static Result<std::unique_ptr<DeviceKnob>> Of(KnobKind kind, Gpu& gpu, KnobJournal& journal,
                                                Ceiling ceiling = Ceiling::kAsFound);
  static Result<std::unique_ptr<DeviceKnob>> Of(CpuPackage& cpu, KnobJournal& journal,
                                                Ceiling ceiling = Ceiling::kAsFound);
  // For devices that end with the process: nothing of them outlives a SIGKILL.
  static Result<std::unique_ptr<DeviceKnob>> WithoutJournal(KnobKind kind, Gpu& gpu,
                                                            Ceiling ceiling = Ceiling::kAsFound);
  static Result<std::unique_ptr<DeviceKnob>> WithoutJournal(CpuPackage& cpu,
                                                            Ceiling ceiling = Ceiling::kAsFound);

  // `journal` may be null, as above; that of a borrowed knob is not used.
  DeviceKnob(std::unique_ptr<KnobActuator> actuator, KnobJournal* journal, Ceiling ceiling);
  ~DeviceKnob() override;
  DeviceKnob(const DeviceKnob&) = delete;
  DeviceKnob& operator=(const DeviceKnob&) = delete;

  const std::string& name() const override { return name_; }
  KnobKind kind() const override { return actuator_->kind(); }
  const KnobDevice& device() const { return actuator_->device(); }

  // Up to the ceiling.
  Result<KnobChoices> Choices();
  Result<std::vector<Setting>> Settings(const Setting& stride) override;
  Result<Setting> Current() override;
  Watts max_power() const override { return actuator_->max_power(); }

  Status Set(const Setting& setting) override;
  Status CheckInForce(const Setting& setting) override;
  Status Restore() override;

  // From now on it may be turned as high as the device allows.
  void LiftCeiling();

  // Whether this process is a fork()ed child of the one that made it.
  bool InForkedChild() const;

 private:
  // Since the first Set().
  struct Turned {
    KnobState before;                // To be put back.
    std::optional<Setting> ceiling;  // nullopt: that of the device.
    std::vector<Setting> ours;       // Our settings that may be in force, the latest last.
  };

  // These need the lock.
  Status Take(const Setting& first);
  Status TurnTo(const Setting& setting);
  Status AdoptWhatOthersSet();
  Status CheckCeiling(const Setting& setting) const;
  void Abandon();
  Status Forget();

  const std::unique_ptr<KnobActuator> actuator_;
  KnobJournal* const journal_;
  const std::string name_;
  const unsigned fork_generation_;
  std::mutex mutex_;
  Ceiling ceiling_;               // Guarded by mutex_.
  std::optional<Turned> turned_;  // Guarded by mutex_; nullopt while nothing is changed.
};

}  // namespace zeus
