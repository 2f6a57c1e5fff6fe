#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "zeus/base/result.h"
#include "zeus/store/connection_pool.h"
#include "zeus/store/group_committer.h"
#include "zeus/store/parsed_jobs.h"

namespace zeus {

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
