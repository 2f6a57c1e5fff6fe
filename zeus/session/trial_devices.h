#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/base/detached_call.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/job/job_service.h"
#include "zeus/session/metric_sources.h"
#include "zeus/session/profiled_devices.h"
#include "zeus/session/run_power_limit.h"
#include "zeus/session/train_options.h"
#include "zeus/session/trial_meter.h"

// A driver may become slow or hang at any time. The thread that attends a command and its signals
// must not wait for it, so everything that asks a driver during a run is a *step* on another
// thread.
namespace zeus {

// Runs steps one after the other, each on a thread of its own. A step that takes longer than the
// timeout is overdue: its thread goes on, and the caller does without. One owner.
class DeviceSteps {
 public:
  explicit DeviceSteps(Seconds timeout) : timeout_(timeout) {}

  // Whether a step has not returned yet; overdue() if for longer than the timeout.
  bool busy() const { return call_ != nullptr && !call_->FinishedWithin(Seconds(0)); }
  bool overdue() const { return busy() && clock_.Now() - begun_ >= timeout_; }
  // Readable when the step has returned; -1 when there is none.
  int descriptor() const { return call_ != nullptr ? call_->descriptor() : -1; }
  Seconds timeout() const { return timeout_; }

  // Call it only when no step is busy. The step owns or shares what it uses; what it owns is
  // released on its thread.
  void Start(std::function<void()> step);
  // Forgets a step that has returned.
  void Clear() { call_.reset(); }

 private:
  SystemClock clock_;
  const Seconds timeout_;
  TimePoint begun_{};
  std::unique_ptr<DetachedCall<bool>> call_;
};

// The limit and the meter of one run, with what they need: a step that is overdue keeps them alive,
// and restores the limit when the driver answers at last. While a step is busy, only the step may
// use them.
class TrialDevices {
 public:
  struct Parts {
    Clock& clock;                              // Must outlive every step.
    std::shared_ptr<ProfiledDevices> devices;  // Null when there is nothing to measure and limit.
    std::shared_ptr<MetricSources> sources;
    LimitPlan plan;
    Trial trial;
    JobSpec spec;
  };
  explicit TrialDevices(Parts parts);
  ~TrialDevices();
  TrialDevices(const TrialDevices&) = delete;
  TrialDevices& operator=(const TrialDevices&) = delete;

  Status Begin();
  // As TrialMeter::Epoch(). A report that was processed long after its arrival teaches nothing:
  // meanwhile the GPUs used more energy than the epochs did.
  Result<std::optional<TrialReport>> Epoch(const EpochReport& said, EpochTiming timing);
  RunPowerLimit* limit() { return limit_.get(); }  // Null without devices.

  // The profile that this run measured is not kept. May be called while a step is busy.
  void Doubt() { doubted_ = true; }

 private:
  Parts parts_;
  std::atomic<bool> doubted_{false};
  bool late_ = false;  // A report was processed long after its arrival.
  std::unique_ptr<RunPowerLimit> limit_;
  std::unique_ptr<TrialMeter> meter_;
};

}  // namespace zeus
