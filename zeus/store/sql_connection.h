#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "zeus/base/result.h"

namespace zeus {

// NULL, BIGINT, DOUBLE PRECISION, TEXT. Infinities are kept; NaN is not a value for a database.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;
using SqlRow = std::vector<SqlValue>;

// Makes a row, or the values of a statement's placeholders. Moves its arguments where it can.
template <class... Value>
SqlRow Values(Value&&... value) {
  SqlRow row;
  row.reserve(sizeof...(value));
  (row.emplace_back(std::forward<Value>(value)), ...);
  return row;
}

struct SqlAnswer {
  std::vector<SqlRow> rows{};
  std::int64_t changed = 0;  // The number of rows inserted, updated or deleted.
};

// For the few statements that differ between the two engines.
enum class SqlDialect { kSqlite, kPostgres };

// The effect of a failed statement on the transaction around it.
enum class SqlTrouble {
  kNone,
  kTransactionLost,  // The database rolled the transaction back. It may be run again.
  kCommitUnknown,    // The connection broke during COMMIT: whether it happened is unknown.
  kOther,
};

// A connection to a database. Placeholders are $1, $2, …; statements are prepared once and kept.
// Errors: kUnavailable (locked, connection lost, disk full), kConflict (a constraint),
// kPermissionDenied, kInternal (damaged, or not the schema we know). Messages name the file or the
// host, never a password. One thread at a time.
class SqlConnection {
 public:
  virtual ~SqlConnection() = default;

  virtual SqlDialect dialect() const = 0;
  // The file, or the host and the database, for messages.
  virtual const std::string& name() const = 0;

  // Outside a transaction for reads only: those are repeated when the server went away meanwhile.
  virtual Result<SqlAnswer> Run(const std::string& sql, std::span<const SqlValue> values) = 0;
  Result<SqlAnswer> Run(const std::string& sql) { return Run(sql, {}); }

  // Sends a statement that changes exactly one row, within a transaction. It may not have happened
  // yet when this returns: if it fails, the next Run() or Commit() fails with kTransactionLost or
  // with the error of this statement.
  virtual Status Post(const std::string& sql, std::span<const SqlValue> values) = 0;

  // The effect of the latest call that failed.
  virtual SqlTrouble trouble() const = 0;

  // Begins a transaction that writes. Connects again when the connection was lost.
  virtual Status Begin() = 0;
  // The transaction is over even when this fails.
  virtual Status Commit() = 0;
  // Does nothing when the transaction was lost.
  virtual void Rollback() = 0;

  // A part of a transaction that can be undone without the rest; one at a time.
  Status BeginPart() {
    ZEUS_RETURN_IF_ERROR(Run("SAVEPOINT part"));
    return Ok();
  }
  Status KeepPart() {
    ZEUS_RETURN_IF_ERROR(Run("RELEASE SAVEPOINT part"));
    return Ok();
  }
  Status UndoPart() {
    ZEUS_RETURN_IF_ERROR(Run("ROLLBACK TO SAVEPOINT part"));
    return KeepPart();
  }

 protected:
  static Error NotOneRow(std::int64_t changed) {
    return Error{ErrorCode::kNotFound, "one row was to be changed, not " + std::to_string(changed)};
  }
};

}  // namespace zeus
