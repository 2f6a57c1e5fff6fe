#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/device/knobs/knob_actuator.h"

namespace zeus::daemon {

// Tells for how long a worker has been in a call into its driver. Written by the worker, read by
// any thread. The clock must outlive the worker's last call.
class CallWatch {
 public:
  // `called` gets the duration of each call, on the thread that made it; may be null.
  explicit CallWatch(Clock& clock, std::function<void(Seconds)> called = nullptr)
      : clock_(clock), called_(std::move(called)) {}

  // How long the present call has taken so far; zero outside of a call.
  Seconds InCallFor() const;

  // From now on a call that returns goes no further: what its worker would use then may be gone.
  void Abandon() { abandoned_ = true; }

  // One call, as long as it lives.
  class Call {
   public:
    explicit Call(CallWatch& watch);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    CallWatch& watch_;
  };

 private:
  static constexpr double kNoCall = -1;

  Clock& clock_;
  const std::function<void(Seconds)> called_;
  std::atomic<double> since_{kNoCall};  // Seconds of the clock.
  std::atomic<bool> abandoned_{false};
};

// An actuator whose calls are watched. The watch must outlive it.
std::unique_ptr<KnobActuator> Watched(std::unique_ptr<KnobActuator> actuator, CallWatch& watch);

// Gives a journal, which holds its lock while it asks, the state that was read before: a driver
// that hangs must not keep the journal from the workers of other devices. Of the state only the
// setting is kept, since persistence mode is a knob of its own here. The actuator must outlive it.
class ReadAhead final : public KnobActuator {
 public:
  ReadAhead(KnobActuator& actuator, const KnobState& state);

  const KnobDevice& device() const override { return actuator_.device(); }
  KnobKind kind() const override { return actuator_.kind(); }
  Watts max_power() const override { return actuator_.max_power(); }
  Result<KnobChoices> Choices() override { return actuator_.Choices(); }
  Result<KnobState> Read() override;
  Status Apply(const Setting& setting) override { return actuator_.Apply(setting); }
  Status PutBack(const KnobState& state) override;
  Result<std::string> PutToDefault() override { return actuator_.PutToDefault(); }
  std::optional<Joules> EpochMark() override { return mark_; }

 private:
  KnobActuator& actuator_;
  std::optional<KnobState> state_;  // nullopt: it was changed since.
  const std::optional<Joules> mark_;
};

}  // namespace zeus::daemon
