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
#include "zeus/base/result.h"
#include "zeus/base/text.h"

namespace zeus {

// NULL, BIGINT, DOUBLE PRECISION, TEXT. Infinities are kept; NaN is not a value for a database.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;
using SqlRow = std::vector<SqlValue>;

// A row, or what the placeholders of a statement stand for. Moves what it can.
template <class... Value>
SqlRow Values(Value&&... value) {
  SqlRow row;
  row.reserve(sizeof...(value));
  (row.emplace_back(std::forward<Value>(value)), ...);
  return row;
}

struct SqlAnswer {
  std::vector<SqlRow> rows{};
  std::int64_t changed = 0;  // Rows that were inserted, updated or deleted.
};

// The few places where the two engines do not speak the same SQL ask for this.
enum class SqlDialect { kSqlite, kPostgres };

// What an error of a statement means for the transaction around it.
enum class SqlTrouble {
  kNone,
  kTransactionLost,  // The database took back the whole transaction. It may be run again.
  kCommitUnknown,    // The connection broke during COMMIT: done or not, nobody here knows.
  kOther,
};

// One connection to a database. Placeholders are $1, $2, …; statements are prepared once and kept.
// Errors: kUnavailable (locked, connection lost, disk full), kConflict (a constraint),
// kPermissionDenied, kInternal (damaged, or not the schema we know). Messages name the file or the
// host, never a password. One user at a time.
class SqlConnection {
 public:
  virtual ~SqlConnection() = default;

  virtual SqlDialect dialect() const = 0;
  // The file, or host and database: for messages.
  virtual const std::string& name() const = 0;

  // Outside a transaction for reads only: they are asked again if the server went away meanwhile.
  virtual Result<SqlAnswer> Run(const std::string& sql, std::span<const SqlValue> values) = 0;
  Result<SqlAnswer> Run(const std::string& sql) { return Run(sql, {}); }

  // A statement that changes exactly one row, within a transaction. It need not have happened when
  // this returns: the next Run() or Commit() fails if it did not, with kTransactionLost or with the
  // error that this would have given.
  virtual Status Post(const std::string& sql, std::span<const SqlValue> values) = 0;

  // Of the latest call that failed.
  virtual SqlTrouble trouble() const = 0;

  // For writing. Connects again when the connection was lost.
  virtual Status Begin() = 0;
  // When it fails the transaction is over as well.
  virtual Status Commit() = 0;
  // Nothing to do when the transaction was lost.
  virtual void Rollback() = 0;

  // A part of a transaction that can be taken back alone; one at a time.
  Status BeginPart() {
    ZEUS_RETURN_IF_ERROR(Run("SAVEPOINT part"));
    return Ok();
  }
  Status KeepPart() {
    ZEUS_RETURN_IF_ERROR(Run("RELEASE SAVEPOINT part"));
    return Ok();
  }
  Status TakeBackPart() {
    ZEUS_RETURN_IF_ERROR(Run("ROLLBACK TO SAVEPOINT part"));
    return KeepPart();
  }

 protected:
  static Error NotOneRow(std::int64_t changed) {
    return Error{ErrorCode::kNotFound, "one row was to be changed, not " + std::to_string(changed)};
  }
};

// Takes the values of a row from left to right. The first that is of another type than asked for
// is remembered; what comes after is default values until status() is asked.
class RowReader {
 public:
  RowReader(std::string_view table, SqlRow row) : table_(table), row_(std::move(row)) {}

  std::string Text() { return Take<std::string>(); }
  std::string TextOrNothing() { return TakeOptional<std::string>().value_or(std::string()); }
  std::int64_t Integer() { return Take<std::int64_t>(); }
  int SmallInteger() { return static_cast<int>(Take<std::int64_t>()); }
  std::optional<std::int64_t> OptionalInteger() { return TakeOptional<std::int64_t>(); }
  double Real() { return Take<double>(); }
  std::optional<double> OptionalReal() { return TakeOptional<double>(); }
  WallTime Time() { return WallTime(std::chrono::microseconds(Integer())); }
  std::optional<WallTime> OptionalTime() {
    const auto time = OptionalInteger();
    if (!time) return std::nullopt;
    return WallTime(std::chrono::microseconds(*time));
  }
  zeus::Json JsonValue() { return Checked(ParseJson(Text())); }

  // A value of the program that is stored by its name.
  template <class T>
  T Named(std::optional<T> (*find)(std::string_view)) {
    const auto found = find(Text());
    if (!found) Complain("unknown name");
    return found.value_or(T{});
  }
  // What may fail to be read.
  template <class T>
  T Checked(Result<T> value) {
    if (value.ok()) return std::move(value).value();
    Complain(value.error().message);
    return T{};
  }

  Status status() const {
    if (!wrong_) return Ok();
    return Error{ErrorCode::kInternal, "a row of table " + Quote(table_) + " makes no sense (" +
                                           *wrong_ +
                                           "): restore a copy of the database (docs/store.md)"};
  }

 private:
  template <class T>
  T Take() {
    if (next_ < row_.size())
      if (T* value = std::get_if<T>(&row_[next_++])) return std::move(*value);
    Complain("of another type");
    return T{};
  }
  template <class T>
  std::optional<T> TakeOptional() {
    if (next_ < row_.size() && std::holds_alternative<std::monostate>(row_[next_])) {
      ++next_;
      return std::nullopt;
    }
    return Take<T>();
  }
  void Complain(const std::string& why) {
    if (!wrong_) wrong_ = "value " + std::to_string(next_) + ": " + why;
  }

  std::string_view table_;
  SqlRow row_;
  std::size_t next_ = 0;
  std::optional<std::string> wrong_;
};

}  // namespace zeus
