#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/job/job.h"
#include "zeus/job/job_repository.h"
#include "zeus/store/sql_connection.h"

namespace zeus {

// Runs changes, one after the other, within a database transaction that its caller began. The
// writes of a change are sent when the change has succeeded or reads. It waits for a row that
// another server has locked only while it holds no lock itself, so that servers cannot deadlock.
// One owner.
class SqlTransaction {
 public:
  explicit SqlTransaction(SqlConnection& connection) : connection_(connection) {}

  // --- for a change ---

  Result<SqlAnswer> Ask(const std::string& sql, const SqlRow& values);
  // As Ask(), for statements that change something and may have to be undone without the rest.
  Result<SqlAnswer> Change(const std::string& sql, const SqlRow& values);
  // Queues a statement that changes exactly one row.
  void Write(std::string sql, SqlRow values);

  // Returns whether the table has a row with this id; if so, locks it and puts its columns into
  // `answer`.
  Result<bool> Lock(const std::string& table, const std::string& id, const std::string& columns,
                    SqlAnswer& answer);
  // Inserts a row whose first value is its id. Returns false when the id exists already.
  Result<bool> InsertNew(const std::string& table, const std::string& columns, const SqlRow& row);

  // Whether the present change has sent or queued something that can still be undone.
  bool has_written() const { return part_is_open_ || !writes_.empty(); }
  bool part_is_open() const { return part_is_open_; }

  // --- for the owner of the transaction ---

  // The database's reason for the end of a change, whatever the change itself returned.
  struct Failure {
    enum class Kind { kBusy, kRunAgain, kOther };
    Kind kind = Kind::kOther;
    Error error;
  };
  // The owner calls FetchFailure() after each change, and then Keep() or Undo(). After a failure
  // other than kBusy, or of one of these calls, the transaction cannot be used any more.
  std::optional<Failure> FetchFailure();
  Status Keep();
  Status Undo();
  // Sends a statement at the end, when nothing is undone any more.
  Status Post(const std::string& sql, const SqlRow& values);

 private:
  struct Statement {
    std::string sql;
    SqlRow values;
  };

  Status SendWrites();
  Status OpenPart();
  template <class T>
  Result<T> Noted(Result<T> result);

  SqlConnection& connection_;
  bool holds_locks_ = false;

  // The following belong to the present change.
  std::vector<Statement> writes_;  // Queued, not sent.
  bool part_is_open_ = false;
  std::set<std::pair<std::string, std::string>>
      missed_;  // Table and id of rows that did not exist.
  std::optional<Failure> failure_;
};

// Jobs, trials and events as rows of their tables, and back.

// The columns, in the order of the rows below. Reading returns kInternal, naming the column, for
// values that this program cannot have written.
extern const std::string kJobColumns;
extern const std::string kTrialColumns;  // The key (job_id, number) first.
extern const std::string kTrialColumnsButKey;
extern const std::string kEventColumns;

Result<SqlRow> ToRow(const Job& job);
// The columns of a job that change: id, recurrences, trials, events, policy_state,
// least_cost_joules, least_cost_batch_size.
Result<SqlRow> UpdatedColumns(const Job& job);
inline constexpr std::size_t kStateColumn = 4;  // The index of policy_state among them.
Result<SqlRow> ToRow(const Trial& trial);
Result<SqlRow> ToRow(const JobEvent& event);

// A job whose spec (except the id) and state are not parsed yet.
struct JobTexts {
  static Result<JobTexts> From(SqlRow row);

  Job job{};
  std::string spec{};
  std::string state{};
};
Result<JobSpec> SpecFrom(const std::string& text);
Result<Json> StateFrom(const std::string& text);

Result<Trial> TrialFrom(SqlRow row);
Result<JobEvent> EventFrom(SqlRow row);

// Caches the parsed specs and states of job rows, since parsing takes longer than the database. The
// key includes the text, so the cache is right whoever writes to the database. Bounded memory.
// Thread-safe.
class ParsedJobs {
 public:
  // Reads a row of kJobColumns.
  Result<Job> JobFrom(SqlRow row);

  // Puts a state into the cache that is about to be written, and will be read.
  void Expect(const std::string& id, std::string state_text, const Json& state);

 private:
  template <class T>
  struct Parsed {
    std::string text;
    T value;
  };
  template <class T>
  using Shared = std::shared_ptr<const Parsed<T>>;
  struct Entry {
    Shared<JobSpec> spec{};
    Shared<Json> state{};
  };

  Entry Find(const std::string& id);
  void Keep(const std::string& id, Entry entry);

  std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;  // Guarded by mutex_.
  std::size_t bytes_ = 0;  // About the size of the texts. Guarded by mutex_.
};

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
