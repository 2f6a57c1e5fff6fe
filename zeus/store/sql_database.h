#pragma once

#include <memory>
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
  Status Write(const GroupCommitter::Change& change) { return committer_.Write(change); }
  Result<SqlAnswer> Read(const std::string& sql, const SqlRow& values);
  Status Ping();

  ParsedJobs& parsed_jobs() { return parsed_jobs_; }

 private:
  Connections connections_;
  ParsedJobs parsed_jobs_;
  GroupCommitter committer_;
};

}  // namespace zeus
