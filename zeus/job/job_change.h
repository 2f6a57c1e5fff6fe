#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/job/job_policy.h"
#include "zeus/job/job_repository.h"
#include "zeus/job/job_service.h"

namespace zeus {

// A change of one job within one transaction: the life cycle of its trials. The job is locked, so
// every decision is based on the latest state, also when several servers share the database. Lives
// as long as the transaction.
class JobChange {
 public:
  struct Clocks {
    const Clock& day;
    const LeaseClock& leases;
  };
  // Locks the job. The time of the change is read after the lock was obtained.
  static Result<JobChange> Begin(JobTransaction& transaction, const std::string& job_id,
                                 const Clocks& clocks);

  Result<StartedTrial> StartTrial(const TrialRequest& request);
  Result<ReportAnswer> Report(const TrialReport& report);
  Result<Trial> Heartbeat(std::int64_t number);
  Result<Trial> EndTrial(const TrialEnd& end);
  Status LearnEpochCost(const EpochCostReport& report);
  Result<int> ExpireOverdueTrials();

  // Writes the job back. Without this call the changes above are lost.
  Status Finish();

 private:
  struct Place {  // The position of a trial in the life of the job.
    std::int64_t recurrence = 0;
    int attempt = 0;
  };

  JobChange(JobTransaction& transaction, Job job, JobPolicy policies, const Clocks& clocks)
      : transaction_(transaction),
        job_(std::move(job)),
        policies_(std::move(policies)),
        now_(clocks.day.WallNow()),
        lease_now_(clocks.leases.Now()) {}

  Result<Trial> Find(std::int64_t number);
  Result<Place> NextPlace(const TrialRequest& request);
  Result<Trial> ChooseTrial(const TrialRequest& request);
  // Makes a trial without asking the policy: a baseline, or a run that began without the service.
  Result<Trial> GivenTrial(const TrialRequest& request);
  RunBound BoundNow(const BatchSizePolicy& policy, const Trial& trial) const;
  Status Skip(const Situation& situation, const Choice& choice, const Trial& trial);
  Result<StartedTrial> Started(const Trial& trial);
  Result<ReportAnswer> AnswerAbout(const Trial& trial);
  Result<bool> DeadlineHasPassed(const Trial& trial);
  Result<bool> AnotherTryMayHelp(const Trial& trial);
  Status CheckBatchSize(int batch_size) const;
  Status CheckProgress(const TrialReport& report, const Trial& trial) const;
  void Apply(const TrialReport& report, Trial& trial) const;
  Result<std::optional<std::string>> WhyStop(const Trial& trial);
  Status End(Trial& trial, TrialStatus status, std::string reason);
  void Renew(Trial& trial) const;
  Result<Joules> EarlierCost(const Trial& trial);
  Status Append(EventKind kind, std::optional<std::int64_t> trial, Json detail);

  JobTransaction& transaction_;
  Job job_;
  JobPolicy policies_;
  WallTime now_;        // The time of day, for records.
  WallTime lease_now_;  // The time of the lease clock.
};

}  // namespace zeus
