#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/session/job_source.h"
#include "zeus/session/train_options.h"

namespace zeus {

struct KnobRepair;
class ProfiledDevices;

// Restores limits that a killed run left changed, and returns what was done. Failures are logged.
std::vector<KnobRepair> RepairTrainLimits(Clock& clock, Seconds driver_timeout);

// Opens the GPUs whose energy and power limit belong to a run; all of them when not chosen by
// number. Null when this machine has none: the command may report its own energy.
Result<std::unique_ptr<ProfiledDevices>> OpenTrainDevices(
    Clock& clock, const TrainOptions& options, const std::optional<std::vector<unsigned>>& gpus,
    Seconds driver_timeout);

// Where and how Train() runs.
struct TrainPlace {
  JobSourceOptions jobs{};
  std::optional<std::vector<unsigned>> gpus{};  // As in "gpu:1"; all when not set.
  Seconds driver_timeout{30};                   // How long drivers may take to find the GPUs.
  TrainListener* listener = nullptr;
  // Polled some fifty times a second on the calling thread; true stops the command and ends the
  // call as an interruption.
  std::function<bool()> stop_requested{};
};

// Runs a recurring job of a foreign command, as `zeus train` does: chooses the batch size, finds
// the power limit while the command runs, stops runs that cost too much, and learns. Returns when
// all recurrences are over. Signals are left to the caller's program; when it dies, the command is
// killed with it.
Result<TrainOutcome> Train(TrainOptions options, const TrainPlace& place = {});

}  // namespace zeus
