#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/carbon/carbon_accounting.h"
#include "zeus/carbon/shift_report.h"
#include "zeus/job/job_service.h"
#include "zeus/job/start_advice.h"
#include "zeus/optimizer/shift/start_waiter.h"
#include "zeus/process/signal_watch.h"
#include "zeus/session/train_options.h"

namespace zeus {

// Waits for the start of one recurrence, and judges afterwards what the waiting brought. Whatever
// goes wrong with forecasts only means that the recurrence starts now, or when it was planned last.
// One owner; everything it is given must outlive it.
class ShiftedStart {
 public:
  struct Parts {
    Clock& clock;
    SignalWatch& signals;
    JobService& service;
    const CarbonAccounting& forecasts;
    const CarbonAccounting&
        actual;  // The values that came; often the same object as the forecasts.
    TrainListener& listener;
    std::function<bool()> stop_requested;  // Asked while waiting; true ends the wait.
  };

  // The first moment is now.
  ShiftedStart(const Parts& parts, const ShiftOptions& options, std::string job,
               std::string gpu_model);

  // Returns when the recurrence is to start, or when the session is to end.
  void Wait();

  // A run of the recurrence has ended.
  void NoteRun(const Trial& trial);
  // Told when the recurrence is over; nullopt when nothing ran.
  std::optional<ShiftReport> Judge() const;

 private:
  Result<StartAdvice> Advise();
  void Announce(const StartAdvice& advice, WallTime now);
  // Returns false when the session is to end.
  bool RestUntil(WallTime time);

  Parts parts_;
  const ShiftOptions& options_;
  const std::string job_;
  const std::string gpu_model_;
  const WallTime first_moment_;
  StartWaiter waiter_;
  std::optional<RunEstimate> estimate_;
  bool estimated_ = false;  // The history was read.
  std::optional<WallTime> announced_;
  bool trouble_told_ = false;
  std::optional<double> promised_percent_;
  EnergyUse run_{};
};

}  // namespace zeus
