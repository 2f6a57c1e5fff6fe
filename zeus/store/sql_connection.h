#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/text.h"

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

// Texts of statements, and values on their way to rows and back.

// "$3, $4, $5"
std::string Placeholders(int first, int last);
std::string InsertInto(const std::string& table, const std::string& columns, int count);

// Returns kInvalidArgument when a text is not UTF-8, and kInternal when a number is not finite:
// JSON has neither, and a state that is read back changed would be worse than none.
Result<std::string> StorableJson(const Json& json);

// Refuses values that one of the engines would refuse or change, so that both accept the same ones:
// PostgreSQL accepts only UTF-8 without zero bytes, and SQLite has no NaN. `what` names the row in
// the message.
Status CheckValues(const SqlRow& row, std::string_view what);

inline std::int64_t SqlTime(WallTime time) { return time.time_since_epoch().count(); }

// The condition on the id of rows that belong to a name space (identifier.h).
struct SqlCondition {
  std::string sql{};
  SqlRow values{};
};
SqlCondition InNameSpace(const std::string& name_space);

// Reads all rows of an answer with a function that reads one.
template <class T>
Result<std::vector<T>> AllFrom(SqlAnswer answer, Result<T> (*from)(SqlRow)) {
  std::vector<T> all;
  all.reserve(answer.rows.size());
  for (SqlRow& row : answer.rows) {
    ZEUS_TRY(T one, from(std::move(row)));
    all.push_back(std::move(one));
  }
  return all;
}

// Reads the values of a row from left to right. The first value of an unexpected type becomes the
// error of status(), and everything read after it is a default value.
class RowReader {
 public:
  RowReader(std::string_view table, SqlRow row) : table_(table), row_(std::move(row)) {}

  std::string Text() { return Next<std::string>(); }
  std::string TextOrNothing() { return NextOptional<std::string>().value_or(std::string()); }
  std::int64_t Integer() { return Next<std::int64_t>(); }
  int SmallInteger() { return static_cast<int>(Next<std::int64_t>()); }
  std::optional<std::int64_t> OptionalInteger() { return NextOptional<std::int64_t>(); }
  double Real() { return Next<double>(); }
  std::optional<double> OptionalReal() { return NextOptional<double>(); }
  WallTime Time() { return WallTime(std::chrono::microseconds(Integer())); }
  std::optional<WallTime> OptionalTime() {
    const auto time = OptionalInteger();
    if (!time) return std::nullopt;
    return WallTime(std::chrono::microseconds(*time));
  }
  zeus::Json JsonValue() { return Checked(ParseJson(Text())); }

  // Reads an enumerator that is stored by its name.
  template <class T>
  T Named(std::optional<T> (*find)(std::string_view)) {
    const auto found = find(Text());
    if (!found) Complain("unknown name");
    return found.value_or(T{});
  }
  // Returns the value, or notes its error and returns a default one.
  template <class T>
  T Checked(Result<T> value) {
    if (value.ok()) return std::move(value).value();
    Complain(value.error().message);
    return T{};
  }

  Status status() const {
    if (!mistake_) return Ok();
    return Error{ErrorCode::kInternal, "a row of table " + Quote(table_) + " makes no sense (" +
                                           *mistake_ +
                                           "): restore a copy of the database (docs/store.md)"};
  }

 private:
  template <class T>
  T Next() {
    if (next_ < row_.size())
      if (T* value = std::get_if<T>(&row_[next_++])) return std::move(*value);
    Complain("of another type");
    return T{};
  }
  template <class T>
  std::optional<T> NextOptional() {
    if (next_ < row_.size() && std::holds_alternative<std::monostate>(row_[next_])) {
      ++next_;
      return std::nullopt;
    }
    return Next<T>();
  }
  void Complain(const std::string& why) {
    if (!mistake_) mistake_ = "value " + std::to_string(next_) + ": " + why;
  }

  std::string_view table_;
  SqlRow row_;
  std::size_t next_ = 0;
  std::optional<std::string> mistake_;
};

}  // namespace zeus
