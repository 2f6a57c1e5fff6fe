#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"
#include "zeus/job/job.h"
#include "zeus/job/savings.h"

// The history of a job, summed up by recurrence and by batch size. All functions are pure.
namespace zeus {

// All tries of one submission of the job.
struct RecurrenceAmounts {
  std::int64_t recurrence = 0;
  int tries = 0;
  int first_batch_size = 0;  // This and the next two describe the first try.
  std::string gpu_model{};
  RunRole role = RunRole::kExploiting;
  int batch_size = 0;  // Batch size of the last try.
  bool converged = false;
  bool under_way = false;   // A try is running.
  bool failed = false;      // A try crashed or was lost.
  bool shared = false;      // Other processes used the GPUs of a try.
  bool unmeasured = false;  // The energy of a try is not known well enough.
  // A try was the first run with its batch size on its GPU model that was not left undisturbed:
  // runners profile power limits during that one.
  bool profiling = false;
  WallTime started_at{};               // Start of the first try.
  std::optional<WallTime> ended_at{};  // End of the latest try; nullopt while one is under way.
  Joules energy{};
  Seconds time{};
  Joules cost{};

  bool Comparable() const { return !shared && !unmeasured; }
};

// Returns the recurrences of these trials, which are all trials of a job by number, in ascending
// order.
std::vector<RecurrenceAmounts> ByRecurrence(std::span<const Trial> trials);

// The measured amounts of the runs with one batch size: start of the program and profiling of power
// limits included. Runs of the baseline, on shared GPUs and without known energy are left out.
struct MeasuredArm {
  int batch_size = 0;
  int runs = 0;
  int reached = 0;
  // Means per run to the target, failed runs included.
  MeanAmount energy{};
  MeanAmount time{};
  MeanAmount cost{};
};

// Returns one element per batch size of the spec. Costs weigh energy and time by `eta`.
std::vector<MeasuredArm> MeasureArms(const JobSpec& spec, std::span<const Trial> trials,
                                     const std::string& gpu_model, double eta);

}  // namespace zeus
