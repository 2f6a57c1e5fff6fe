#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "zeus/job/job_repository.h"
#include "zeus/store/active_trials.h"
#include "zeus/store/parsed_jobs.h"
#include "zeus/store/sql_connection.h"

namespace zeus {

// Changes of jobs, one after the other, within one database transaction that belongs to somebody
// else. It spares the database what it can: what a change writes is sent when the change has
// succeeded (or reads), and a job that several changes lock is read once and written once.
// Waits for a job that another server holds only while it holds none itself, so that servers cannot
// wait for each other in a circle. One owner.
class SqlJobTransaction final : public JobTransaction {
 public:
  SqlJobTransaction(SqlConnection& connection, ParsedJobs& parsed)
      : connection_(connection), parsed_(parsed) {}

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

  // Why a change is over, whatever it made of it.
  struct Failure {
    enum class Kind { kJobIsBusy, kRunAgain, kOther };
    Kind kind = Kind::kOther;
    Error error;
  };
  // Each change is followed by TakeFailure(), and if there was one that is not kJobIsBusy the
  // transaction cannot be used any more; then by one of the others. The same holds when they fail.
  std::optional<Failure> TakeFailure();
  Status Keep();
  Status TakeBack();
  // Before the commit.
  Status WriteJobs();

 private:
  struct Statement {
    std::string sql;
    SqlRow values;
  };
  struct HeldJob {
    std::shared_ptr<const Job> job{};
    bool changed = false;
    bool locked_in_part = false;  // The lock goes when the part is taken back.
    // Of a job that several changes ask about; nullptr until then, and if there are too many.
    std::shared_ptr<ActiveTrials> active{};
    bool ask_for_active = false;
  };

  Result<SqlAnswer> Ask(const std::string& sql, const SqlRow& values);
  Status SendWrites();
  Status OpenPart();
  Result<bool> Locked(const std::string& id, SqlAnswer& answer, const std::string& columns);
  Result<ActiveTrials*> ActiveOf(const std::string& job_id);
  void Put(std::string sql, SqlRow row, const Trial& trial);
  Result<std::optional<Trial>> OneTrial(const std::string& sql, const SqlRow& values);
  Error JobIsThere(const std::string& id);
  template <class T>
  Result<T> Noted(Result<T> result);
  void Remember(const std::string& id);

  SqlConnection& connection_;
  ParsedJobs& parsed_;
  bool holds_locks_ = false;
  std::map<std::string, HeldJob> held_;

  // Of the present change:
  std::vector<Statement> writes_;  // Not sent yet.
  bool part_is_open_ = false;
  std::map<std::string, std::optional<HeldJob>> before_;  // What it changed of held_.
  std::set<std::string> missed_;                          // Jobs it looked for in vain.
  std::optional<Failure> failure_;
};

}  // namespace zeus
