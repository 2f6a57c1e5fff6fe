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
#include "zeus/job/run_rules.h"

namespace zeus {

// What happens to one job within one transaction: the life cycle of trials. The job is locked, so
// that what is decided here is decided on the latest state, whichever server decides. Lives as long
// as the transaction.
class JobChange {
 public:
  struct Clocks {
    const Clock& day;
    const LeaseClock& leases;
  };
  // The time of the change is that at which the job is ours, not that at which we began to wait.
  static Result<JobChange> Begin(JobTransaction& transaction, const std::string& job_id,
                                 const Clocks& clocks);

  Result<StartedTrial> StartTrial(const TrialRequest& request);
  Result<ReportAnswer> Report(const TrialReport& report);
  Result<Trial> Heartbeat(std::int64_t number);
  Result<Trial> EndTrial(const TrialEnd& end);
  Status LearnEpochCost(const EpochCostReport& report);
  Result<int> ExpireOverdueTrials();

  // Writes the job back. Nothing above counts without.
  Status Finish();

 private:
  struct Place {  // In the life of the job.
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
  // The default as without Zeus, or a batch size that was used without asking: no policy is asked.
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
  WallTime now_;        // For labelling records.
  WallTime lease_now_;  // For leases.
};

}  // namespace zeus
