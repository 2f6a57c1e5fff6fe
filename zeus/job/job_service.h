#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/job/job.h"
#include "zeus/job/job_repository.h"
#include "zeus/job/savings.h"

namespace zeus {

struct RegisteredJob {
  Job job{};
  bool created = false;  // False: there was one with the same spec.
};

struct TrialRequest {
  std::string job_id{};
  std::string gpu_model{};           // Empty: as the job's spec says.
  std::optional<Watts> max_power{};  // nullopt: as the job's spec says.
  // Another try of this recurrence, whose last trial ended without reaching the target; nullopt: a
  // new recurrence.
  std::optional<std::int64_t> recurrence{};
  std::string request_id{};        // Makes the request idempotent; may be empty.
  std::optional<Seconds> lease{};  // For runners that cannot send heartbeats; else the spec's.
  // Set for a run that began without asking and is reported later; nullopt: the policy chooses.
  std::optional<int> batch_size{};
  // An undisturbed run of the default, for savings to be measured against (savings.h): the runner
  // leaves the power limit as it is. Further tries of its recurrence are none: it has one.
  bool baseline = false;
};

struct StartedTrial {
  Trial trial{};
  int max_epochs = 0;  // To plan with; the answers to reports decide.
  // Batch sizes whose epoch cost on this GPU model is only estimated: worth a quick measurement.
  std::vector<int> unprofiled_batch_sizes{};
};

// Cumulative since the start of the trial.
struct TrialReport {
  std::string job_id{};
  std::int64_t trial = 0;
  int epoch = 0;  // Completed, from 1.
  Seconds time{};
  Joules energy{};
  double metric = 0.0;
  // Of one epoch at the power limit that was chosen, when the runner knows it: the first epochs
  // carry the profiling of power limits.
  std::optional<Joules> epoch_energy{};
  std::optional<Seconds> epoch_time{};
  std::optional<Watts> power_limit{};
  // Since the start of the trial, as Trial has them.
  bool undisturbed = false;
  bool shared = false;
};

struct ReportAnswer {
  bool stop = false;
  bool converged = false;
  bool retry = false;  // The recurrence should go on with another trial.
  std::string message{};
  Trial trial{};
};

struct TrialEnd {
  std::string job_id{};
  std::int64_t trial = 0;
  // kStopped: the run came to its end by itself without reaching the target, which teaches.
  // kFailed: it crashed, or its user ended it, which teaches nothing.
  TrialStatus status = TrialStatus::kFailed;
  std::string reason{};
};

struct EpochCostReport {
  std::string job_id{};
  std::string gpu_model{};
  int batch_size = 0;
  Seconds time{};  // Of one epoch.
  Joules energy{};
  std::optional<Watts> max_power{};
};

struct SavingsQuery {
  std::string job_id{};
  std::string gpu_model{};     // Empty: that of the spec.
  std::string baseline_job{};  // Whose undisturbed runs to compare with; empty: the job's own.
};

struct JobArms {
  std::string gpu_model{};
  std::string stage{};
  int best_batch_size = 0;
  std::vector<ArmBelief> arms{};
};

// What can be asked about recurring jobs, here or over HTTP. Errors: kInvalidArgument (names the
// field), kNotFound, kConflict, kUnavailable (try again: every call may be repeated), kInternal.
// Thread-safe.
class JobService {
 public:
  virtual ~JobService() = default;

  // kConflict, naming the fields that differ, when there is a job of this id with another spec. An
  // empty id with a prefix: the id is made up.
  virtual Result<RegisteredJob> Register(const JobSpec& spec) = 0;
  virtual Status Delete(const std::string& job_id) = 0;

  virtual Result<StartedTrial> StartTrial(const TrialRequest& request) = 0;
  // A repeated report gets the same answer; one that contradicts an earlier one is a kConflict. An
  // ended trial answers how it ended.
  virtual Result<ReportAnswer> Report(const TrialReport& report) = 0;
  // A sign of life. kConflict when the trial has ended.
  virtual Result<Trial> Heartbeat(const std::string& job_id, std::int64_t trial) = 0;
  // Does nothing to a trial that has ended.
  virtual Result<Trial> EndTrial(const TrialEnd& end) = 0;
  virtual Status LearnEpochCost(const EpochCostReport& report) = 0;

  virtual Result<Job> GetJob(const std::string& job_id) = 0;
  virtual Result<std::vector<Job>> ListJobs(const JobQuery& query) = 0;
  virtual Result<Trial> GetTrial(const std::string& job_id, std::int64_t trial) = 0;
  virtual Result<std::vector<Trial>> ListTrials(const std::string& job_id,
                                                const TrialQuery& query) = 0;
  // An empty model: that of the spec.
  virtual Result<JobArms> GetArms(const std::string& job_id, const std::string& gpu_model) = 0;
  // Returns the saving of the job by its only definition: see savings.h.
  virtual Result<JobSavings> GetSavings(const SavingsQuery& query) = 0;
  virtual Result<std::vector<JobEvent>> ListEvents(const std::string& job_id, std::int64_t after,
                                                   int limit) = 0;

  // Makes calls of other threads that wait for an answer return kUnavailable soon. Calls that have
  // not begun to wait are not reached, so a caller repeats it until they have returned. A service
  // within this process does not wait, and does nothing.
  virtual void CancelCalls() {}
};

// Passes every call on to another service, which must outlive it: a wrapper overrides the calls
// that it changes.
class ForwardingJobService : public JobService {
 public:
  explicit ForwardingJobService(JobService& service) : service_(service) {}

  Result<RegisteredJob> Register(const JobSpec& spec) override { return service_.Register(spec); }
  Status Delete(const std::string& job_id) override { return service_.Delete(job_id); }
  Result<StartedTrial> StartTrial(const TrialRequest& request) override {
    return service_.StartTrial(request);
  }
  Result<ReportAnswer> Report(const TrialReport& report) override {
    return service_.Report(report);
  }
  Result<Trial> Heartbeat(const std::string& job_id, std::int64_t trial) override {
    return service_.Heartbeat(job_id, trial);
  }
  Result<Trial> EndTrial(const TrialEnd& end) override { return service_.EndTrial(end); }
  Status LearnEpochCost(const EpochCostReport& report) override {
    return service_.LearnEpochCost(report);
  }
  Result<Job> GetJob(const std::string& job_id) override { return service_.GetJob(job_id); }
  Result<std::vector<Job>> ListJobs(const JobQuery& query) override {
    return service_.ListJobs(query);
  }
  Result<Trial> GetTrial(const std::string& job_id, std::int64_t trial) override {
    return service_.GetTrial(job_id, trial);
  }
  Result<std::vector<Trial>> ListTrials(const std::string& job_id,
                                        const TrialQuery& query) override {
    return service_.ListTrials(job_id, query);
  }
  Result<JobArms> GetArms(const std::string& job_id, const std::string& gpu_model) override {
    return service_.GetArms(job_id, gpu_model);
  }
  Result<JobSavings> GetSavings(const SavingsQuery& query) override {
    return service_.GetSavings(query);
  }
  Result<std::vector<JobEvent>> ListEvents(const std::string& job_id, std::int64_t after,
                                           int limit) override {
    return service_.ListEvents(job_id, after, limit);
  }
  void CancelCalls() override { service_.CancelCalls(); }

 protected:
  JobService& service_;
};

}  // namespace zeus
