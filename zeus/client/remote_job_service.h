#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/client/server_calls.h"
#include "zeus/job/job_service.h"

namespace zeus {

// The recurring jobs of a `zeus serve`, over HTTP. Calls are repeated as CallOptions::retry says,
// which is safe: every request carries what makes it idempotent. Job::policy_state stays on the
// server and is empty here; GetArms() returns what it means. Thread-safe.
class RemoteJobService final : public JobService {
 public:
  using Options = CallOptions;

  // Does not connect yet. The clock must outlive the service.
  static Result<std::unique_ptr<RemoteJobService>> Connect(const Options& options, Clock& clock);

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
  void CancelCalls() override { calls_->Cancel(); }

 private:
  explicit RemoteJobService(std::unique_ptr<ServerCalls> calls) : calls_(std::move(calls)) {}

  std::unique_ptr<ServerCalls> calls_;
};

}  // namespace zeus
