#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/process.h"
#include "zeus/base/result.h"
#include "zeus/client/spooling_job_service.h"
#include "zeus/job/job_service.h"
#include "zeus/process/signal_watch.h"
#include "zeus/session/profiled_devices.h"
#include "zeus/session/scheduled_task.h"
#include "zeus/session/shifted_start.h"
#include "zeus/session/train_options.h"
#include "zeus/session/trial_devices.h"

namespace zeus {

// A trial that a process of this machine runs.
struct RunningTrial {
  std::string where{};  // The database or server that knows it.
  std::string job{};
  std::string request{};   // By which the trial was asked for.
  std::int64_t trial = 0;  // 0: asked for, and no answer yet.
  ProcessIdentity runner{};
  // The machine of the runner and its boot (BootTime), since several machines may share the folder
  // of records; empty: this one, now.
  std::string host{};
  std::string boot{};
};

// Trials that are run here, a file for each: what a process that was killed leaves behind, its
// successor finds. Processes may share it. One owner.
class TrialRecords {
 public:
  explicit TrialRecords(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Adds a record, or replaces the one of the same request.
  Status Add(const RunningTrial& trial) const;
  void Remove(const RunningTrial& trial) const;

  // Returns the trials of this job whose runners on this machine have died. Files that cannot be
  // read are skipped.
  std::vector<RunningTrial> Orphans(const std::string& where, const std::string& job) const;

 private:
  std::filesystem::path TrialFile(const RunningTrial& trial) const;

  std::filesystem::path folder_;
};

// Runs a recurring job of a foreign command: registers the job, ends the trials of runners that
// died, and runs the recurrences. One owner; everything it is given must outlive it.
class TrainSession {
 public:
  struct Parts {
    Clock& clock;
    SignalWatch& signals;
    JobService& service;
    std::string where;                         // Names the service, for records of running trials.
    std::shared_ptr<ProfiledDevices> devices;  // Null when this machine has no GPU.
    Seconds driver_timeout{30};  // How long the drivers may take to answer during a run.
    std::string activity_group;  // For the environment of the command, as "NAME=value".
    TrainListener& listener;
    std::function<bool()> stop_requested{};  // Polled; true ends the session as a signal does.
    // Not null when recurrences are shifted.
    const CarbonAccounting* forecasts = nullptr;
    const CarbonAccounting* carbon = nullptr;
  };

  TrainSession(const Parts& parts, TrainOptions options);

  Result<TrainOutcome> Execute();

 private:
  struct RecurrenceEnd {
    bool reached = false;
    std::optional<int> exit_code{};  // Set when the session is to end at once.
  };

  // Notes a signal that asks to end, or the caller's wish to stop. Not during a run, which sees to
  // it itself.
  bool StopRequested();
  SpoolingJobService::Options ServiceOptions();
  std::optional<int> ExitCodeOfStop() const;
  Status CompleteSpec();
  // Returns kInvalidArgument for a fixed limit that the devices do not allow.
  Status CheckFixedLimit();
  Status EndOrphans();
  // Goes on where an earlier start of this task of a scheduler was ended.
  Status ResumeTask();
  // Restores the power limit after the last run, if the drivers answer in time.
  Status RestoreLimit();
  // Sets the follower of the power limit, when one is wanted, and judges it afterwards.
  void BeginFollowing(unsigned number);
  void EndFollowing();
  // Null when this recurrence is not shifted.
  std::unique_ptr<ShiftedStart> MakeShiftedStart(unsigned number);
  // The first recurrences are those of the baseline.
  Result<RecurrenceEnd> RunRecurrence(unsigned number);
  Result<RecurrenceEnd> RunTries(unsigned number, ShiftedStart* shifted);
  Result<TrialOutcome> RunTrial(unsigned number, std::optional<std::int64_t> recurrence);
  std::string MakeRequestId(unsigned number, const ProcessIdentity& self);
  TrialRequest MakeRequest(const std::string& id, std::optional<std::int64_t> recurrence) const;
  unsigned all_recurrences() const { return options_.baseline + options_.recurrences; }
  // Records the trial on disk, so that the next start finds it.
  void Record(const RunningTrial& record);

  Parts parts_;
  TrainOptions options_;
  SpoolingJobService service_;  // Runs start also while the service does not answer.
  TrialRecords records_;
  DeviceSteps steps_;
  Job job_{};
  std::optional<int> end_signal_;
  std::vector<ShiftReport> shifts_;
  bool silent_ = false;  // The service did not answer the last reports of the latest run.
  std::uint64_t requests_ = 0;
  std::optional<ScheduledTask> task_;
  TaskPast past_{};
  Seconds spent_{0};  // Time of the earlier tries of the recurrence.
  bool record_trouble_logged_ = false;
};

}  // namespace zeus
