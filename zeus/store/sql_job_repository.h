#pragma once

#include <memory>
#include <string>
#include <vector>

#include "zeus/job/job_repository.h"
#include "zeus/store/connection_pool.h"
#include "zeus/store/group_committer.h"
#include "zeus/store/parsed_jobs.h"

namespace zeus {

// Jobs in an SQL database whose schema is in place (Migrate()). Everything that protects one change
// from another is a lock of the database, so any number of processes may have one of these on the
// same database. Thread-safe.
class SqlJobRepository final : public JobRepository {
 public:
  struct Connections {
    std::unique_ptr<ConnectionPool> writers;
    int most_writers = 1;
    // nullptr: reads use the writers' connections too, as a database in memory needs it.
    std::unique_ptr<ConnectionPool> readers{};
  };

  explicit SqlJobRepository(Connections connections);

  Status Write(const Change& change) override;
  Result<Job> FindJob(const std::string& id) override;
  Result<std::vector<Job>> ListJobs(const JobQuery& query) override;
  Result<Trial> FindTrial(const std::string& job_id, std::int64_t number) override;
  Result<std::vector<Trial>> ListTrials(const std::string& job_id,
                                        const TrialQuery& query) override;
  Result<std::vector<JobEvent>> ListEvents(const std::string& job_id, std::int64_t after,
                                           int limit) override;
  Result<std::vector<std::string>> JobsWithOverdueTrials(WallTime now, int limit) override;
  Status Ping() override;

 private:
  Result<SqlAnswer> Read(const std::string& sql, const SqlRow& values);

  Connections connections_;
  ParsedJobs parsed_;
  GroupCommitter committer_;
};

}  // namespace zeus
