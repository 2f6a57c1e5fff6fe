#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeus/job/job_repository.h"
#include "zeus/store/sql_database.h"

namespace zeus {

// Jobs in an SQL database. Thread-safe.
class SqlJobRepository final : public JobRepository {
 public:
  explicit SqlJobRepository(std::shared_ptr<SqlDatabase> database)
      : database_(std::move(database)) {}

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
  const std::shared_ptr<SqlDatabase> database_;
};

}  // namespace zeus
