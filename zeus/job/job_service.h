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
  bool created = false;  // False when the job was known already, with the same spec.
};

struct TrialRequest {
  std::string job_id{};
  std::string gpu_model{};           // Empty for that of the spec.
  std::optional<Watts> max_power{};  // nullopt for that of the spec.
  // Another try of this recurrence, whose last trial ended without reaching the target; nullopt: a
  // new recurrence.
  std::optional<std::int64_t> recurrence{};
  std::string request_id{};        // Makes the request idempotent; may be empty.
  std::optional<Seconds> lease{};  // A longer lease, for runners that cannot send heartbeats.
  // Set for a run that began without asking and is reported later; nullopt: the policy chooses.
  std::optional<int> batch_size{};
  // An undisturbed run of the default, which savings are measured against (savings.h): the runner
  // leaves the power limit as it is. Its recurrence has no further tries.
  bool baseline = false;
};

struct StartedTrial {
  Trial trial{};
  int max_epochs = 0;  // An estimate to plan with: the answers to reports decide.
  // Batch sizes whose epoch cost on this GPU model is only estimated, so measuring it pays off.
  std::vector<int> unprofiled_batch_sizes{};
};

// The state of a trial after an epoch. Amounts are cumulative since the start of the trial.
struct TrialReport {
  std::string job_id{};
  std::int64_t trial = 0;
  int epoch = 0;  // The number of completed epochs, at least 1.
  Seconds time{};
  Joules energy{};
  double metric = 0.0;
  // The amounts of one epoch at the chosen power limit, when the runner knows them: the first
  // epochs include the profiling of power limits.
  std::optional<Joules> epoch_energy{};
  std::optional<Seconds> epoch_time{};
  std::optional<Watts> power_limit{};
  // See Trial; these are about the whole trial so far.
  bool undisturbed = false;
  bool shared = false;
  bool unmeasured = false;
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
  // kStopped: the run came to its end by itself, without reaching the target; the policy learns
  // from it. kFailed: the run crashed or its user ended it; the policy learns nothing.
  TrialStatus status = TrialStatus::kFailed;
  std::string reason{};
};

struct EpochCostReport {
  std::string job_id{};
  std::string gpu_model{};
  int batch_size = 0;
  Seconds time{};   // The time of one epoch.
  Joules energy{};  // The energy of one epoch.
  std::optional<Watts> max_power{};
};

struct SavingsQuery {
  std::string job_id{};
  std::string gpu_model{};  // Empty for that of the spec.
  // The job whose undisturbed runs are compared with; empty for itself.
  std::string baseline_job{};
};

struct JobArms {
  std::string gpu_model{};
  std::string stage{};
  int best_batch_size = 0;
  std::vector<ArmBelief> arms{};
  // The choice for the next recurrence, if it began now; nullopt from servers of old versions.
  std::optional<Explanation> next{};
};

// The operations on recurring jobs, in this process (LocalJobService) or over HTTP
// (RemoteJobService in zeus/client). Errors are kInvalidArgument with the name of the field,
// kNotFound, kConflict, kInternal, and kUnavailable, after which every call may be repeated.
// Thread-safe.
class JobService {
 public:
  virtual ~JobService() = default;

  // Returns kConflict, with the names of the fields that differ, when there is a job of this id
  // with another spec. For a spec with a prefix and without an id, an id is generated.
  virtual Result<RegisteredJob> Register(const JobSpec& spec) = 0;
  virtual Status Delete(const std::string& job_id) = 0;

  virtual Result<StartedTrial> StartTrial(const TrialRequest& request) = 0;
  // A repeated report gets the same answer; a report that contradicts an earlier one is a
  // kConflict. A report of a final trial is answered with how the trial ended.
  virtual Result<ReportAnswer> Report(const TrialReport& report) = 0;
  // Renews the lease of the trial. Returns kConflict when the trial has ended.
  virtual Result<Trial> Heartbeat(const std::string& job_id, std::int64_t trial) = 0;
  // A trial that has ended stays as it is.
  virtual Result<Trial> EndTrial(const TrialEnd& end) = 0;
  virtual Status LearnEpochCost(const EpochCostReport& report) = 0;

  virtual Result<Job> GetJob(const std::string& job_id) = 0;
  virtual Result<std::vector<Job>> ListJobs(const JobQuery& query) = 0;
  virtual Result<Trial> GetTrial(const std::string& job_id, std::int64_t trial) = 0;
  virtual Result<std::vector<Trial>> ListTrials(const std::string& job_id,
                                                const TrialQuery& query) = 0;
  // An empty model stands for that of the spec.
  virtual Result<JobArms> GetArms(const std::string& job_id, const std::string& gpu_model) = 0;
  // See savings.h for the definition.
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
