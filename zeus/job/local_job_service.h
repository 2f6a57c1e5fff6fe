#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/random.h"
#include "zeus/job/job_repository.h"
#include "zeus/job/job_service.h"
#include "zeus/job/lease_clock.h"

namespace zeus {

// Recurring jobs in a repository, for the server and for `zeus train` without a server. Each call
// is one transaction, and all state is in the repository, so any number of services may share one.
// Thread-safe; repository and clock must outlive it.
class LocalJobService final : public JobService {
 public:
  struct LeaseOptions {
    LeaseClock::Absence absence = LeaseClock::Absence::kCounted;
    BootClock boot_clock{};  // Without one, an absence is measured by the time of day.
  };

  LocalJobService(JobRepository& repository, const Clock& clock);
  LocalJobService(JobRepository& repository, const Clock& clock, Entropy entropy);
  LocalJobService(JobRepository& repository, const Clock& clock, Entropy entropy,
                  LeaseOptions leases);

  Result<RegisteredJob> Register(const JobSpec& spec) override;
  Status Delete(const std::string& job_id) override;
  Result<StartedTrial> StartTrial(const TrialRequest& request) override;
  Result<ReportAnswer> Report(const TrialReport& report) override;
  Result<Trial> Heartbeat(const std::string& job_id, std::int64_t trial) override;
  Result<Trial> EndTrial(const TrialEnd& end) override;
  Status LearnEpochCost(const EpochCostReport& report) override;
  Result<Job> GetJob(const std::string& job_id) override;
  Result<std::vector<Job>> ListJobs(const JobQuery& query) override;
  Result<Trial> GetTrial(const std::string& job_id, std::int64_t trial) override;
  Result<std::vector<Trial>> ListTrials(const std::string& job_id,
                                        const TrialQuery& query) override;
  Result<JobArms> GetArms(const std::string& job_id, const std::string& gpu_model) override;
  Result<JobSavings> GetSavings(const SavingsQuery& query) override;
  Result<std::vector<JobEvent>> ListEvents(const std::string& job_id, std::int64_t after,
                                           int limit) override;

  // Marks active trials whose lease is over as expired, and returns their number. Is called
  // periodically.
  Result<int> ExpireOverdueTrials();

 private:
  // Runs `ask` on a job in one transaction. Its answer is returned after the commit.
  template <class Answer, class Ask>
  Result<Answer> Change(const std::string& job_id, const Ask& ask);
  Status BeginLeaseClock();
  void KeepLeaseTick();
  // Returns the trial as callers see it: with the time of day at which its lease ends.
  Trial Shown(Trial trial);

  JobRepository& repository_;
  const Clock& clock_;
  Entropy entropy_;
  LeaseClock leases_;
};

}  // namespace zeus
