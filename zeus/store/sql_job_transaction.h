#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/job/job.h"
#include "zeus/job/job_repository.h"
#include "zeus/store/parsed_jobs.h"
#include "zeus/store/sql_connection.h"
#include "zeus/store/sql_transaction.h"

namespace zeus {

// The active trials of a job that is locked, as the changes of a group leave them: what they ask
// again and again is answered without the database. One owner.
class ActiveTrials {
 public:
  explicit ActiveTrials(std::vector<Trial> trials);

  // nullptr: it is not active, or not there.
  const Trial* Find(std::int64_t number) const;
  bool Has(RunRole role) const;
  // By number, at most `limit`.
  std::vector<Trial> Overdue(WallTime now, int limit) const;

  // What the present change inserts or updates …
  void Put(const Trial& trial);
  // … and what becomes of it.
  void Keep() { undo_.clear(); }
  void TakeBack();

 private:
  std::map<std::int64_t, Trial> trials_;
  std::vector<std::pair<std::int64_t, std::optional<Trial>>> undo_;
};

// Changes of jobs, one after the other, within one transaction. It spares the database what it can:
// a job that several changes lock is read once and written once. One owner.
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

  // What becomes of the present change, as the transaction was told.
  void Keep();
  void TakeBack();
  // Before the commit.
  Status WriteJobs();

 private:
  struct HeldJob {
    std::shared_ptr<const Job> job{};
    bool changed = false;
    bool locked_in_part = false;  // The lock goes when the part is taken back.
    // Of a job that several changes ask about; nullptr until then, and if there are too many.
    std::shared_ptr<ActiveTrials> active{};
    bool ask_for_active = false;
  };

  Result<ActiveTrials*> ActiveOf(const std::string& job_id);
  void Put(std::string sql, SqlRow row, const Trial& trial);
  Result<std::optional<Trial>> OneTrial(const std::string& sql, const SqlRow& values);
  void Remember(const std::string& id);

  SqlTransaction& transaction_;
  ParsedJobs& parsed_;
  std::map<std::string, HeldJob> held_;
  // What the present change changed of held_.
  std::map<std::string, std::optional<HeldJob>> before_;
};

}  // namespace zeus
