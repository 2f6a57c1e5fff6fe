#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/job/job_repository.h"
#include "zeus/job/job_service.h"

namespace zeus {

// Lists that a service returns only a page at a time, as a whole.

Result<std::vector<Job>> AllJobs(JobService& service, JobQuery query);
Result<std::vector<Trial>> AllTrials(JobService& service, const std::string& job_id);
Result<std::vector<JobEvent>> AllEvents(JobService& service, const std::string& job_id);

// Keeps jobs in memory, for replay and for tests. Thread-safe.
class MemoryRepository final : public JobRepository {
 public:
  Status Write(const Change& change) override;
  Result<Job> FindJob(const std::string& id) override;
  Result<std::vector<Job>> ListJobs(const JobQuery& query) override;
  Result<Trial> FindTrial(const std::string& job_id, std::int64_t number) override;
  Result<std::vector<Trial>> ListTrials(const std::string& job_id,
                                        const TrialQuery& query) override;
  Result<std::vector<JobEvent>> ListEvents(const std::string& job_id, std::int64_t after,
                                           int limit) override;
  Result<std::vector<std::string>> JobsWithOverdueTrials(WallTime now, int limit) override;
  Result<std::optional<LeaseTick>> FindLeaseTick() override;
  Result<JobCounts> Count(const std::string& name_space) override;
  Status Ping() override;

 private:
  class Transaction;
  struct Record {
    Job job{};
    std::map<std::int64_t, Trial> trials{};
    std::map<std::int64_t, JobEvent> events{};
  };

  const Record* Find(const std::string& id) const;

  std::mutex mutex_;
  std::map<std::string, Record> records_{};  // Guarded by mutex_, as is tick_.
  std::optional<LeaseTick> tick_{};
};

}  // namespace zeus
