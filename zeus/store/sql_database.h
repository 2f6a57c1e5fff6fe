#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/store/connection_pool.h"
#include "zeus/store/parsed_jobs.h"

namespace zeus {

class ParsedJobs;
class StoreTransaction;

// Lets callers that wait at the same time share a commit, which is a wait for the disk. There is no
// thread of its own: the caller who waits longest takes a connection, runs its own change and those
// that come meanwhile, commits once and tells everybody. Who is alone waits
// for nobody. Thread-safe.
class GroupCommitter {
 public:
  // What it does to the database, and nothing else.
  using Change = std::function<Status(StoreTransaction&)>;

  // As many groups as there are connections may be under way at once.
  GroupCommitter(ConnectionPool& connections, int groups, ParsedJobs& parsed);

  // Ok once `change` is on disk. It may be called again, and from another thread than the caller's,
  // who waits here. kUnavailable when it is not known whether it was committed.
  Status Write(const Change& change);

 private:
  struct Waiting {
    const Change& change;
    std::optional<Status> outcome{};  // Guarded by mutex_; once it is there the caller goes.
    std::condition_variable wake{};
  };
  struct Answered {
    Waiting* caller;
    Status outcome;
  };
  // What became of the callers of a group.
  struct Group {
    std::vector<Answered> answered{};
    std::vector<Waiting*> put_back{};  // Another server holds what they lock: again, later.
  };
  enum class Part { kDone, kBusy, kTransactionLost };

  Waiting* NextInLine();
  std::vector<Waiting*> WholeLine();
  void WakeFirst();  // mutex_ is held.

  Group Lead(Waiting& first);
  Group RunTogether(SqlConnection& connection, Waiting& first);
  static Part RunPart(StoreTransaction& transaction, Waiting& caller, Group& group);
  void Commit(SqlConnection& connection, StoreTransaction& transaction, Group& group);
  static std::vector<Waiting*> CallersOf(const Group& group);
  Group RunOneByOne(SqlConnection& connection, const std::vector<Waiting*>& callers);
  void Tell(const Group& group);

  ConnectionPool& connections_;
  ParsedJobs& parsed_;
  const int most_groups_;
  std::mutex mutex_;
  std::deque<Waiting*> line_;  // Guarded by mutex_.
  int groups_ = 0;             // Guarded by mutex_; under way.
};

// An SQL database whose schema is in place (Migrate()). Everything that protects one change from
// another is a lock of the database, so any number of processes may have one of these on the same
// database. Thread-safe.
class SqlDatabase {
 public:
  struct Connections {
    std::unique_ptr<ConnectionPool> writers;
    int most_writers = 1;
    // nullptr: reads use the writers' connections too, as a database in memory needs it.
    std::unique_ptr<ConnectionPool> readers{};
  };

  explicit SqlDatabase(Connections connections);

  // See GroupCommitter.
  Status Write(const GroupCommitter::Change& change);
  Result<SqlAnswer> Read(const std::string& sql, const SqlRow& values);
  // Whether it takes changes: reads of every large table and writes a row of its own. Also reports
  // damage that any call has met since the last time.
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

}  // namespace zeus
