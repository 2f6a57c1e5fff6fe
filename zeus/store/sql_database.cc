#include "zeus/store/sql_database.h"

#include <utility>

#include "zeus/store/sql_values.h"

namespace zeus {

SqlDatabase::SqlDatabase(Connections connections)
    : connections_(std::move(connections)),
      committer_(*connections_.writers, connections_.most_writers, parsed_jobs_) {}

Result<SqlAnswer> SqlDatabase::Read(const std::string& sql, const SqlRow& values) {
  ZEUS_RETURN_IF_ERROR(CheckValues(values, "a question"));
  ConnectionPool& pool = connections_.readers ? *connections_.readers : *connections_.writers;
  ZEUS_TRY(const ConnectionPool::Loan connection, pool.Borrow());
  return connection->Run(sql, values);
}

Status SqlDatabase::Ping() {
  ZEUS_RETURN_IF_ERROR(Read("SELECT MAX(version) FROM zeus_migrations", {}));
  return Ok();
}

}  // namespace zeus
