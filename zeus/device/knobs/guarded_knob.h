#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/device/cpu_package.h"
#include "zeus/device/gpu.h"
#include "zeus/device/knobs/knob.h"

namespace zeus {

// A knob that is restored on every exit that code can see: destruction, std::exit(), an exception
// that is not caught, SIGINT, SIGTERM and SIGHUP. After such an end it cannot be turned any more,
// not even by a program whose own handler goes on: turn the knob through its guard only. The rest
// (SIGKILL, _exit()) is up to the journal. In a fork()ed child it does nothing. The knob must
// outlive it.
class KnobGuard final : public Knob {
 public:
  // `afterwards` is called when a signal ended the program, after the knob is restored: to repair
  // what dead peers left, see knob_repair.h. On another thread.
  explicit KnobGuard(Knob& knob, std::function<void()> afterwards = {});
  ~KnobGuard() override;
  KnobGuard(const KnobGuard&) = delete;
  KnobGuard& operator=(const KnobGuard&) = delete;

  const std::string& name() const override { return knob_.name(); }
  KnobKind kind() const override { return knob_.kind(); }
  Result<std::vector<Setting>> Settings(const Setting& stride) override {
    return knob_.Settings(stride);
  }
  Result<Setting> Current() override { return knob_.Current(); }
  Watts max_power() const override { return knob_.max_power(); }

  Status Set(const Setting& setting) override;
  Status CheckInForce(const Setting& setting) override { return knob_.CheckInForce(setting); }
  Status Restore() override;

  // Whether an end of the program was seen, after which nothing can be set.
  bool ended() const { return ended_; }

 private:
  friend class KnobGuards;
  void End();
  void RestoreOrLog();

  Knob& knob_;
  const std::function<void()> afterwards_;
  const unsigned fork_generation_;
  std::mutex mutex_;  // Around the knob: nothing is set after End().
  std::atomic<bool> ended_{false};
};

class DeviceKnob;
class KnobGuard;
class KnobJournal;

// The knob of one device as a program should turn it: noted in the journal of this user, so that
// the next start or `zeus knobs restore` repairs what a SIGKILL left, and put back on every other
// end of the program (see KnobGuard). The first Set() repairs what a killed program left on
// this knob. The device must outlive it.
class GuardedKnob final : public Knob {
 public:
  static Result<std::unique_ptr<GuardedKnob>> Of(KnobKind kind, Gpu& gpu,
                                                 Ceiling ceiling = Ceiling::kAsFound);
  static Result<std::unique_ptr<GuardedKnob>> Of(CpuPackage& cpu,
                                                 Ceiling ceiling = Ceiling::kAsFound);

  ~GuardedKnob() override;

  const std::string& name() const override;
  KnobKind kind() const override;
  Result<std::vector<Setting>> Settings(const Setting& stride) override;
  Result<Setting> Current() override;
  Watts max_power() const override;
  Status Set(const Setting& setting) override;
  Status CheckInForce(const Setting& setting) override;
  Status Restore() override;

 private:
  GuardedKnob();
  Status OpenJournal();
  void Guard(std::unique_ptr<DeviceKnob> knob);

  // These end in reverse order: what is put back needs the journal.
  SystemClock clock_;
  std::unique_ptr<KnobJournal> journal_;  // Null for devices that end with the process.
  std::unique_ptr<DeviceKnob> knob_;
  std::unique_ptr<KnobGuard> guard_;
};

// Sets a power limit and puts the previous one back on scope exit, also when training fails, and
// when the program is ended by a signal; what a SIGKILL left is put back by the next start or by
// `zeus knobs restore`: a guarded knob that is turned once.
class [[nodiscard]] ScopedPowerLimit {
 public:
  // kUnavailable while this or another process holds the limit of this GPU. kConflict above the
  // limit that was found, unless the ceiling is that of the device.
  static Result<ScopedPowerLimit> Set(Gpu& gpu, Watts limit, Ceiling ceiling = Ceiling::kAsFound);

  // Puts the previous limit back now; the error says why it could not. Once is enough.
  Status Restore() { return knob_->Restore(); }

 private:
  explicit ScopedPowerLimit(std::unique_ptr<GuardedKnob> knob) : knob_(std::move(knob)) {}

  std::unique_ptr<GuardedKnob> knob_;
};

// Logs that a knob could not be restored. The same message is logged once: the optimiser, the guard
// and the knob itself each try, and each would log it.
void LogFailedRestore(const Error& error);
// A knob was restored after all: should that fail again, it is logged again.
void ForgetFailedRestores();

}  // namespace zeus
