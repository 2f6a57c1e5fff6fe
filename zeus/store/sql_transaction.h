#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/store/sql_connection.h"

namespace zeus {

// Changes, one after the other, within one database transaction that belongs to somebody else. What
// a change writes is sent when the change has succeeded (or reads). Waits for a row that another
// server holds only while it holds none itself, so that servers cannot wait for each other in a
// circle. One owner.
class SqlTransaction {
 public:
  explicit SqlTransaction(SqlConnection& connection) : connection_(connection) {}

  // --- for the present change ---

  Result<SqlAnswer> Ask(const std::string& sql, const SqlRow& values);
  // As Ask(), for what changes something: it may have to be taken back alone.
  Result<SqlAnswer> Change(const std::string& sql, const SqlRow& values);
  // A statement that changes exactly one row, sent later.
  void Write(std::string sql, SqlRow values);

  // Whether the table has a row of this id; if so it is locked, and `answer` has its columns.
  Result<bool> Lock(const std::string& table, const std::string& id, const std::string& columns,
                    SqlAnswer& answer);
  // Inserts a row whose first value is its id. False when there is one of this id.
  Result<bool> InsertNew(const std::string& table, const std::string& columns, const SqlRow& row);

  // Something was sent, or is about to be, that can still be taken back.
  bool has_written() const { return part_is_open_ || !writes_.empty(); }
  bool part_is_open() const { return part_is_open_; }

  // --- for whom the transaction belongs to ---

  // Why a change is over, whatever it made of it.
  struct Failure {
    enum class Kind { kBusy, kRunAgain, kOther };
    Kind kind = Kind::kOther;
    Error error;
  };
  // Each change is followed by TakeFailure(), and if there was one that is not kBusy the
  // transaction cannot be used any more; then by one of the others. The same holds when they fail.
  std::optional<Failure> TakeFailure();
  Status Keep();
  Status TakeBack();
  // At the end, without the right to be taken back.
  Status Post(const std::string& sql, const SqlRow& values);

 private:
  struct Statement {
    std::string sql;
    SqlRow values;
  };

  Status SendWrites();
  Status OpenPart();
  template <class T>
  Result<T> Noted(Result<T> result);

  SqlConnection& connection_;
  bool holds_locks_ = false;

  // Of the present change:
  std::vector<Statement> writes_;  // Not sent yet.
  bool part_is_open_ = false;
  std::set<std::pair<std::string, std::string>> missed_;  // Table and id it looked for in vain.
  std::optional<Failure> failure_;
};

}  // namespace zeus
