#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/store/sql_connection.h"
#include "zeus/store/sql_job_transaction.h"

namespace zeus {

// Connections to one database, opened on demand and kept. Thread-safe; must outlive its loans.
class ConnectionPool {
 public:
  using Opener = std::function<Result<std::unique_ptr<SqlConnection>>()>;

  // Exclusive use of a connection, which the destructor returns to the pool.
  class Loan {
   public:
    Loan(ConnectionPool& pool, std::unique_ptr<SqlConnection> connection);
    ~Loan();
    Loan(Loan&&) = default;
    Loan& operator=(Loan&&) = delete;

    SqlConnection& operator*() const { return *connection_; }
    SqlConnection* operator->() const { return connection_.get(); }

   private:
    ConnectionPool* pool_;
    std::unique_ptr<SqlConnection> connection_;
  };

  ConnectionPool(Opener open, int most);

  // Adds a connection that is open already.
  void Add(std::unique_ptr<SqlConnection> connection);

  // Waits for a connection when `most` are in use.
  Result<Loan> Borrow();

 private:
  void Return(std::unique_ptr<SqlConnection> connection);
  void Forget();

  const Opener open_;
  const int most_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<SqlConnection>> idle_;  // Guarded by mutex_.
  int open_connections_ = 0;                          // Lent and idle ones. Guarded by mutex_.
};

class ParsedJobs;
class StoreTransaction;

// Group commit: callers that write at the same time share one commit, because a commit waits for
// the disk. There is no thread of its own. The caller that has waited longest becomes the leader:
// it borrows a connection, runs its own change and those that arrive meanwhile, commits once, and
// hands every caller its outcome. A lone caller does not wait. Thread-safe.
class GroupCommitter {
 public:
  // A change may only affect the database: it may run several times.
  using Change = std::function<Status(StoreTransaction&)>;

  // `groups` is the number of groups that may run at once.
  GroupCommitter(ConnectionPool& connections, int groups, ParsedJobs& parsed);

  // Returns Ok once `change` is on disk. The change may be called repeatedly, and on the thread of
  // another caller. Returns kUnavailable when it is unknown whether it was committed.
  Status Write(const Change& change);

 private:
  struct Waiting {
    const Change& change;
    std::optional<Status> outcome{};  // Guarded by mutex_. Once set, the caller returns.
    std::condition_variable wake{};
  };
  struct Answered {
    Waiting* caller;
    Status outcome;
  };
  // The outcomes of a group.
  struct Group {
    std::vector<Answered> answered{};
    std::vector<Waiting*> put_back{};  // Another server holds their lock: they run later.
  };
  enum class Part { kDone, kBusy, kTransactionLost };

  Waiting* NextInLine();
  std::vector<Waiting*> WholeLine();
  void WakeFirst();  // Needs mutex_.

  Group Lead(Waiting& first);
  Group RunTogether(SqlConnection& connection, Waiting& first);
  static Part RunPart(StoreTransaction& transaction, Waiting& caller, Group& group);
  void Commit(SqlConnection& connection, StoreTransaction& transaction, Group& group);
  static std::vector<Waiting*> Callers(const Group& group);
  Group RunOneByOne(SqlConnection& connection, const std::vector<Waiting*>& callers);
  void Deliver(const Group& group);

  ConnectionPool& connections_;
  ParsedJobs& parsed_;
  const int most_groups_;
  std::mutex mutex_;
  std::deque<Waiting*> line_;  // Guarded by mutex_.
  int groups_ = 0;             // Groups that are running. Guarded by mutex_.
};

// An SQL database whose schema is in place (Migrate()). Only locks of the database protect changes
// from each other, so any number of processes may use the same database. Thread-safe.
class SqlDatabase {
 public:
  struct Connections {
    std::unique_ptr<ConnectionPool> writers;
    int most_writers = 1;
    // nullptr: reads use the writers' connections, as a database in memory requires.
    std::unique_ptr<ConnectionPool> readers{};
  };

  explicit SqlDatabase(Connections connections);

  // See GroupCommitter.
  Status Write(const GroupCommitter::Change& change);
  Result<SqlAnswer> Read(const std::string& sql, const SqlRow& values);
  // Checks that the database accepts changes: reads from every large table and writes a row. Also
  // returns damage that any call has met since the last Ping().
  Status Ping();

  ParsedJobs& parsed_jobs() { return parsed_jobs_; }

 private:
  Result<SqlAnswer> ReadOnce(const std::string& sql, const SqlRow& values);
  void NoteDamage(const Error& error);

  Connections connections_;
  ParsedJobs parsed_jobs_;
  GroupCommitter committer_;
  std::mutex mutex_;
  std::optional<Error> damage_{};  // Guarded by mutex_.
};

// The version of the schema that this program knows: the number of its last migration.
std::int64_t SchemaVersion();

// Brings the database to SchemaVersion() in one transaction, so several servers may start at once.
// Returns kConflict when a newer program has used it, or when it holds tables of another program.
Status Migrate(SqlConnection& connection);

// The same up to an older version of the schema, for databases that are read in from old backups.
Status MigrateTo(SqlConnection& connection, std::int64_t version);

// Returns the version of the schema. Returns kConflict when a newer program has used the database,
// and kInvalidArgument when it holds nothing of ours.
Result<std::int64_t> SchemaVersionOf(SqlConnection& connection);

// Checks a database that may only be read. Returns kConflict when its schema is not
// SchemaVersion().
Status CheckSchema(SqlConnection& connection);

}  // namespace zeus
