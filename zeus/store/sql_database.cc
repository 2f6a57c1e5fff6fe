#include "zeus/store/sql_database.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "zeus/base/random.h"
#include "zeus/store/sql_values.h"
#include "zeus/store/store_transaction.h"

namespace zeus {
namespace {

constexpr std::size_t kProbeSize = 8192;

}  // namespace

SqlDatabase::SqlDatabase(Connections connections)
    : connections_(std::move(connections)),
      committer_(*connections_.writers, connections_.most_writers, parsed_jobs_) {}

Result<SqlAnswer> SqlDatabase::ReadOnce(const std::string& sql, const SqlRow& values) {
  ZEUS_RETURN_IF_ERROR(CheckValues(values, "a question"));
  ConnectionPool& pool = connections_.readers ? *connections_.readers : *connections_.writers;
  ZEUS_TRY(const ConnectionPool::Loan connection, pool.Borrow());
  return connection->Run(sql, values);
}

Result<SqlAnswer> SqlDatabase::Read(const std::string& sql, const SqlRow& values) {
  Result<SqlAnswer> answer = ReadOnce(sql, values);
  if (!answer.ok()) NoteDamage(answer.error());
  return answer;
}

Status SqlDatabase::Write(const GroupCommitter::Change& change) {
  Status written = committer_.Write(change);
  if (!written.ok()) NoteDamage(written.error());
  return written;
}

void SqlDatabase::NoteDamage(const Error& error) {
  if (error.code != ErrorCode::kInternal) return;
  const std::lock_guard lock(mutex_);
  damage_ = error;
}

Status SqlDatabase::Ping() {
  for (const char* table : {"jobs", "trials", "events", "plans"})
    ZEUS_RETURN_IF_ERROR(Read(fmt::format("SELECT 1 FROM {} LIMIT 1", table), {}));
  // Several pages, and never the same: what a change of a job writes, more or less.
  std::string filler;
  while (filler.size() < kProbeSize)
    fmt::format_to(std::back_inserter(filler), "{:016x}", SystemEntropy());
  const auto write = [&](StoreTransaction& transaction) -> Status {
    ZEUS_RETURN_IF_ERROR(
        transaction.rows().Change("INSERT INTO zeus_probe (id, filler) VALUES (1, $1)"
                                  " ON CONFLICT (id) DO UPDATE SET filler = excluded.filler",
                                  Values(filler)));
    return Ok();
  };
  ZEUS_RETURN_IF_ERROR(Write(write));
  const std::lock_guard lock(mutex_);
  if (!damage_) return Ok();
  return *std::exchange(damage_, std::nullopt);
}

}  // namespace zeus
