#include "zeus/store/sql_transaction.h"

#include <fmt/format.h>

#include "zeus/base/text.h"
#include "zeus/store/sql_values.h"

namespace zeus {

std::optional<SqlTransaction::Failure> SqlTransaction::FetchFailure() {
  missed_.clear();
  return std::exchange(failure_, std::nullopt);
}

// Notes the failure of a statement.
template <class T>
Result<T> SqlTransaction::Noted(Result<T> result) {
  if (!result.ok() && !failure_) {
    const bool again = connection_.trouble() == SqlTrouble::kTransactionLost;
    failure_ = Failure{again ? Failure::Kind::kRunAgain : Failure::Kind::kOther, result.error()};
  }
  return result;
}

Status SqlTransaction::SendWrites() {
  for (const Statement& write : writes_)
    ZEUS_RETURN_IF_ERROR(Noted(connection_.Post(write.sql, write.values)));
  writes_.clear();
  return Ok();
}

// Begins a part, so that statements sent before the change has succeeded can be undone.
Status SqlTransaction::OpenPart() {
  if (part_is_open_) return Ok();
  ZEUS_RETURN_IF_ERROR(Noted(connection_.BeginPart()));
  part_is_open_ = true;
  return Ok();
}

Result<SqlAnswer> SqlTransaction::Ask(const std::string& sql, const SqlRow& values) {
  if (failure_) return failure_->error;
  ZEUS_RETURN_IF_ERROR(CheckValues(values, "a question"));
  if (!writes_.empty()) {
    ZEUS_RETURN_IF_ERROR(OpenPart());
    ZEUS_RETURN_IF_ERROR(SendWrites());
  }
  return Noted(connection_.Run(sql, values));
}

Result<SqlAnswer> SqlTransaction::Change(const std::string& sql, const SqlRow& values) {
  ZEUS_RETURN_IF_ERROR(OpenPart());
  return Ask(sql, values);
}

void SqlTransaction::Write(std::string sql, SqlRow values) {
  writes_.push_back({std::move(sql), std::move(values)});
}

Result<bool> SqlTransaction::Lock(const std::string& table, const std::string& id,
                                  const std::string& columns, SqlAnswer& answer) {
  const std::string from = fmt::format(" FROM {} WHERE id = $1", table);
  const bool sqlite =
      connection_.dialect() == SqlDialect::kSqlite;  // BEGIN IMMEDIATE has locked everything.
  const std::string lock = sqlite ? "" : (holds_locks_ ? " FOR UPDATE SKIP LOCKED" : " FOR UPDATE");
  ZEUS_TRY(answer, Ask("SELECT " + columns + from + lock, Values(id)));
  if (!answer.rows.empty()) {
    holds_locks_ = true;
    return true;
  }
  if (!sqlite && holds_locks_) {
    ZEUS_TRY(const SqlAnswer there, Ask("SELECT 1" + from, Values(id)));
    if (!there.rows.empty()) {
      failure_ = Failure{Failure::Kind::kBusy,
                         {ErrorCode::kUnavailable,
                          fmt::format("another server holds {} of {}", Quote(id), table)}};
      return failure_->error;
    }
  }
  missed_.emplace(table, id);
  return false;
}

Result<bool> SqlTransaction::InsertNew(const std::string& table, const std::string& columns,
                                       const SqlRow& row) {
  const std::string insert = InsertInto(table, columns, static_cast<int>(row.size()));
  ZEUS_TRY(const SqlAnswer inserted, Change(insert + " ON CONFLICT (id) DO NOTHING", row));
  holds_locks_ = true;
  if (inserted.changed > 0) return true;
  // Another server inserted the row after this change had not found it, so the change runs again
  // and may decide otherwise.
  const auto& id = std::get<std::string>(row.front());
  if (missed_.contains({table, id}))
    failure_ = Failure{Failure::Kind::kRunAgain,
                       {ErrorCode::kConflict, fmt::format("id: {} is there", Quote(id))}};
  return false;
}

Status SqlTransaction::Keep() {
  ZEUS_RETURN_IF_ERROR(SendWrites());
  if (std::exchange(part_is_open_, false)) return Noted(connection_.KeepPart());
  return Ok();
}

Status SqlTransaction::Undo() {
  writes_.clear();
  if (std::exchange(part_is_open_, false)) return Noted(connection_.UndoPart());
  return Ok();
}

Status SqlTransaction::Post(const std::string& sql, const SqlRow& values) {
  return Noted(connection_.Post(sql, values));
}

}  // namespace zeus
