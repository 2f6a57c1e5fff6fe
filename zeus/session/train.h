#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/carbon/carbon_accounting.h"
#include "zeus/session/job_source.h"
#include "zeus/session/train_options.h"

namespace zeus {

class SignalWatch;

// Where and how Train() runs.
struct TrainPlace {
  JobSourceOptions jobs{};
  JobSource* open_jobs = nullptr;  // Used instead of `jobs` by a caller that has opened them.
  std::optional<std::vector<unsigned>> gpus{};  // As in "gpu:1"; all when not set.
  Seconds driver_timeout{30};                   // How long drivers may take to find the GPUs.
  TrainListener* listener = nullptr;
  // For TrainOptions::shift, which needs both: the forecasts, and what really comes (often the
  // same).
  const CarbonAccounting* forecasts = nullptr;
  const CarbonAccounting* carbon = nullptr;
  // Polled some fifty times a second on the calling thread; true stops the command and ends the
  // call as an interruption.
  std::function<bool()> stop_requested{};
  // Signals that it watches are passed on to the command, and those that ask to end end the call.
  // Null: signals are left to the caller's program, but SIGINT, SIGTERM and SIGHUP restore the
  // power limit before they reach it.
  SignalWatch* signals = nullptr;
};

// Returns an error when the program of the command does not exist: Train() begins with this check,
// so that no job is made for such a command. A name with placeholders is known only when it starts.
Status FindTrainCommand(const TrainOptions& options);

// Returns kInvalidArgument with one sentence when the options contradict each other or make no
// sense. Train() begins with this check as well.
Status CheckTrainOptions(const TrainOptions& options);

// Runs a recurring job of a foreign command, as `zeus train` does: chooses the batch size, finds
// the power limit while the command runs, stops runs that cost too much, and learns. Returns when
// all recurrences are over. When the caller's program dies, the command is killed with it.
Result<TrainOutcome> Train(TrainOptions options, const TrainPlace& place = {});

}  // namespace zeus
