#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "zeus/base/result.h"
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

// Logs that a knob could not be restored. The same message is logged once: the optimiser, the guard
// and the knob itself each try, and each would log it.
void LogFailedRestore(const Error& error);
// A knob was restored after all: should that fail again, it is logged again.
void ForgetFailedRestores();

}  // namespace zeus
