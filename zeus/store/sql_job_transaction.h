#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/job/job.h"
#include "zeus/job/job_repository.h"
#include "zeus/store/job_rows.h"
#include "zeus/store/sql_connection.h"
#include "zeus/store/sql_transaction.h"

namespace zeus {

// The active trials of a locked job, as the changes of a group leave them. It answers the questions
// that every change asks without the database. One owner.
class ActiveTrials {
 public:
  explicit ActiveTrials(std::vector<Trial> trials);

  // Returns nullptr when the trial is not active or does not exist.
  const Trial* Find(std::int64_t number) const;
  bool Has(RunRole role) const;
  // Returns at most `limit` trials, by number.
  std::vector<Trial> Overdue(WallTime now, int limit) const;

  // Records a trial that the present change inserts or updates.
  void Put(const Trial& trial);
  // Ends the present change: its trials stay, or are as before.
  void Keep() { undo_.clear(); }
  void Undo();

 private:
  std::map<std::int64_t, Trial> trials_;
  std::vector<std::pair<std::int64_t, std::optional<Trial>>> undo_;
};

// Runs changes of jobs, one after the other, within one transaction. It saves the database work: a
// job that several changes lock is read once and written once. One owner.
class SqlJobTransaction final : public JobTransaction {
 public:
  SqlJobTransaction(SqlTransaction& transaction, ParsedJobs& parsed)
      : transaction_(transaction), parsed_(parsed) {}

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
  Status KeepLeaseTick(const LeaseTick& tick) override;

  // End the present change, as the same calls of SqlTransaction do.
  void Keep();
  void Undo();
  // Writes the changed jobs. Called before the commit.
  Status WriteJobs();

 private:
  struct HeldJob {
    std::shared_ptr<const Job> job{};
    bool changed = false;
    bool locked_in_part = false;  // Undoing the part releases the lock.
    // Set once several changes ask about the job; nullptr before that, and for too many trials.
    std::shared_ptr<ActiveTrials> active{};
    bool ask_for_active = false;
  };

  Result<ActiveTrials*> FindActive(const std::string& job_id);
  void Put(std::string sql, SqlRow row, const Trial& trial);
  Result<std::optional<Trial>> OneTrial(const std::string& sql, const SqlRow& values);
  void Remember(const std::string& id);

  SqlTransaction& transaction_;
  ParsedJobs& parsed_;
  std::map<std::string, HeldJob> held_;
  // The entries of held_ that the present change altered, as they were before it.
  std::map<std::string, std::optional<HeldJob>> before_;
};

// A database transaction as the changes of a group use it: rows, and jobs on top of them. See
// SqlTransaction for the order of calls. One owner.
class StoreTransaction {
 public:
  using Failure = SqlTransaction::Failure;

  StoreTransaction(SqlConnection& connection, ParsedJobs& parsed)
      : rows_(connection), jobs_(rows_, parsed) {}
  StoreTransaction(const StoreTransaction&) = delete;
  StoreTransaction& operator=(const StoreTransaction&) = delete;

  SqlTransaction& rows() { return rows_; }
  SqlJobTransaction& jobs() { return jobs_; }

  std::optional<Failure> FetchFailure() { return rows_.FetchFailure(); }
  Status Keep() {
    jobs_.Keep();
    return rows_.Keep();
  }
  Status Undo() {
    jobs_.Undo();
    return rows_.Undo();
  }
  // Sends everything that was held back. Called before the commit.
  Status WriteHeld() { return jobs_.WriteJobs(); }

 private:
  SqlTransaction rows_;
  SqlJobTransaction jobs_;
};

}  // namespace zeus
