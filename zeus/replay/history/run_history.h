#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/job/job.h"
#include "zeus/replay/replay_job.h"

// The history of one recurring job as a server or `zeus train` recorded it, and the measurements
// that a replay takes from it.
namespace zeus::replay {

struct RunHistory {
  JobSpec spec{};
  std::vector<Trial> trials{};
  std::vector<JobEvent> events{};  // Usage after each epoch; may be empty.
};

// The measurements of one batch size on one GPU model.
struct MeasuredArm {
  int batch_size = 0;
  // One per run; nullopt: the target was not reached.
  std::vector<std::optional<int>> epochs_to_target{};
  std::vector<LimitRecord> limits{};  // Ascending, at least one; costs are not filled in.
};

struct MeasuredJob {
  JobSpec spec{};
  std::string gpu_model{};
  Watts max_power{};
  std::vector<MeasuredArm> arms{};  // Ascending, at least one.
  std::int64_t recurrences = 0;     // Recurrences with a run on this GPU model.
  Seconds time{};                   // Sum over all runs on this GPU model, failed ones included.
  Joules energy{};
  // Sentences about data that was left out and about assumptions.
  std::vector<std::string> remarks{};

  // The arm with the default batch size or the nearest one.
  const MeasuredArm& default_arm() const;
};

// Measures the runs on one GPU model; an empty `gpu_model` stands for the one with the most runs.
// kNotFound when no run on it has ended.
Result<MeasuredJob> MeasureHistory(const RunHistory& history, std::string_view gpu_model);

// The progress of a run at one report: sums since the start of the run.
struct RunProgress {
  int epochs = 0;
  Seconds time{};
  Joules energy{};
  std::optional<Watts> limit{};
};

// Reads an event of kind trial_reported. kInvalidArgument names the field that is wrong.
Result<RunProgress> ReadProgress(const JobEvent& event);

// Builds a history record by record in the order of an export: trials come before the events about
// them. Add() rejects records that no run can have produced (kInvalidArgument), so that later
// computations need no checks. Not thread-safe.
class HistoryBuilder {
 public:
  void SetJob(JobSpec spec) { history_.spec = std::move(spec); }
  Status Add(Trial trial);
  Status Add(JobEvent event);

  // Returns kNotFound when there is no run.
  Result<RunHistory> Finish() &&;

 private:
  struct Run {
    int epochs = 0;  // Epochs of the whole run, valid once it has ended.
    bool ended = false;
    RunProgress latest{};
  };

  RunHistory history_{};
  std::map<std::int64_t, Run> runs_{};  // By trial number.
};

}  // namespace zeus::replay
