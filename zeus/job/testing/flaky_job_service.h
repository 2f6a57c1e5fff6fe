#pragma once

#include <string>
#include <vector>

#include "zeus/job/job_service.h"

namespace zeus::testing {

// Passes on to a real service, unless it is away.
class FlakyJobService final : public JobService {
 public:
  explicit FlakyJobService(JobService& service) : service_(service) {}

  bool away = false;
  int heartbeats = 0;
  int registrations = 0;

  Result<RegisteredJob> Register(const JobSpec& spec) override {
    ++registrations;
    if (away) return Gone();
    return service_.Register(spec);
  }
  Status Delete(const std::string& job_id) override { return service_.Delete(job_id); }
  Result<StartedTrial> StartTrial(const TrialRequest& request) override {
    if (away) return Gone();
    return service_.StartTrial(request);
  }
  Result<ReportAnswer> Report(const TrialReport& report) override {
    if (away) return Gone();
    return service_.Report(report);
  }
  Result<Trial> Heartbeat(const std::string& job_id, std::int64_t trial) override {
    ++heartbeats;
    if (away) return Gone();
    return service_.Heartbeat(job_id, trial);
  }
  Result<Trial> EndTrial(const TrialEnd& end) override {
    if (away) return Gone();
    return service_.EndTrial(end);
  }
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

 private:
  static Error Gone() { return {ErrorCode::kUnavailable, "away"}; }

  JobService& service_;
};

}  // namespace zeus::testing
