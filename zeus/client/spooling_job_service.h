#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/client/trial_spool.h"
#include "zeus/job/job_service.h"

namespace zeus {

// A JobService without which trainings start, too. When the real one does not answer at the start
// of a run (down, full, slow), it is asked again for a while; then the run gets the batch size that
// the job last used, or the default one, as a trial of its own making. Such trials have negative
// numbers. Their reports are answered here: the target, the greatest number of epochs and the
// deadline end them, nothing else does. What they took is kept in a folder, and told to the service
// when it answers: at the end of the run, or by the next start of the job, of any process of this
// user.
//
// Errors that trying again does not help (a wrong token, another job of that name) stay errors.
// Everything else is passed on. Thread-safe; service and clock must outlive it.
class SpoolingJobService final : public JobService {
 public:
  struct Options {
    std::filesystem::path folder{};  // Empty: nothing is kept, and runs are told to nobody.
    std::string where{};             // Which service it is, so that others do not get its trials.
    Seconds patience{30};            // With a service that does not answer at the start of a run.

    // The folder of this user, for all jobs.
    static Options OfUser(std::string where, Seconds patience);
  };

  SpoolingJobService(JobService& service, Clock& clock, Options options);

  Result<RegisteredJob> Register(const JobSpec& spec) override;
  Status Delete(const std::string& job_id) override { return service_.Delete(job_id); }
  Result<StartedTrial> StartTrial(const TrialRequest& request) override;
  Result<ReportAnswer> Report(const TrialReport& report) override;
  Result<Trial> Heartbeat(const std::string& job_id, std::int64_t trial) override;
  Result<Trial> EndTrial(const TrialEnd& end) override;
  Status LearnEpochCost(const EpochCostReport& report) override;
  Result<Job> GetJob(const std::string& job_id) override;
  Result<std::vector<Job>> ListJobs(const JobQuery& query) override {
    return service_.ListJobs(query);
  }
  Result<Trial> GetTrial(const std::string& job_id, std::int64_t trial) override;
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

  // The last registration found no service.
  bool offline() const;
  // Keeps how a trial of the service ended that cannot be told now; the next start tells it.
  Status Keep(const Trial& trial, const TrialReport& last, const TrialEnd& end);

 private:
  struct OwnTrial {
    Trial trial{};
    KeptTrial kept{};
  };

  // Asks until there is an answer or patience is over.
  template <class Answer, class Ask>
  Result<Answer> AskPatiently(const Ask& ask);
  RegisteredJob RegisterHere(JobSpec spec);
  Result<StartedTrial> StartHere(const TrialRequest& request);
  // Tells the service what is kept about a job; stops at the first thing that cannot be told.
  void Deliver(const std::string& job_id);
  void Save(const OwnTrial& own);
  void FinishHere(OwnTrial& own, TrialStatus status, std::string reason);

  JobService& service_;
  Clock& clock_;
  const Options options_;
  const TrialSpool spool_;

  mutable std::mutex mutex_;  // Guards what follows; not held while the service is asked.
  std::optional<Job> job_{};  // As registered last.
  bool offline_ = false;      // It is registered here only.
  std::map<std::int64_t, OwnTrial> own_{};
  bool trouble_said_ = false;
};

}  // namespace zeus
