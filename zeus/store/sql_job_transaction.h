#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "zeus/job/job_repository.h"
#include "zeus/store/sql_connection.h"

namespace zeus {

// Changes of jobs within one database transaction, which belongs to somebody else. That one also
// asks trouble() after each change: an error of the database ends it, whatever the change made of
// it. Waits for a job that another server holds only while it holds none itself, so that servers
// cannot wait for each other in a circle. One owner.
class SqlJobTransaction final : public JobTransaction {
 public:
  explicit SqlJobTransaction(SqlConnection& connection) : connection_(connection) {}

  Result<Job> LockJob(const std::string& id) override;
  Status InsertJob(const Job& job) override;
  Status UpdateJob(const Job& job) override;
  Status DeleteJob(const std::string& id) override;
  Result<std::optional<Trial>> FindTrial(const std::string& job_id, std::int64_t number) override;
  Result<std::optional<Trial>> FindTrialByRequest(const std::string& job_id,
                                                  const std::string& request_id) override;
  Result<bool> HasActiveTrial(const std::string& job_id, RunRole role) override;
  Result<std::vector<Trial>> OverdueTrials(const std::string& job_id, WallTime now,
                                           int limit) override;
  Result<std::vector<Trial>> TrialsOfRecurrence(const std::string& job_id,
                                                std::int64_t recurrence) override;
  Status InsertTrial(const Trial& trial) override;
  Status UpdateTrial(const Trial& trial) override;
  Status AppendEvent(const JobEvent& event) override;

  // Of the first statement that failed since the last call, and why. Asked after each change.
  struct Failure {
    SqlTrouble trouble = SqlTrouble::kNone;
    Error error;
  };
  std::optional<Failure> TakeFailure();

 private:
  Result<SqlAnswer> Run(const std::string& sql, std::span<const SqlValue> values);
  Result<std::optional<Trial>> OneTrial(const std::string& sql, const SqlRow& values);
  Status ChangeOne(const std::string& sql, const SqlRow& values, const std::string& what);
  std::string LockingClause() const;
  Error JobIsThere(const std::string& id);

  SqlConnection& connection_;
  bool holds_locks_ = false;
  std::optional<Failure> failure_;
  std::set<std::string> missed_;  // Jobs that this change looked for in vain.
};

}  // namespace zeus
