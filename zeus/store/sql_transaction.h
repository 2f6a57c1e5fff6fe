#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/store/sql_connection.h"

namespace zeus {

// Runs changes, one after the other, within a database transaction that its caller began. The
// writes of a change are sent when the change has succeeded or reads. It waits for a row that
// another server has locked only while it holds no lock itself, so that servers cannot deadlock.
// One owner.
class SqlTransaction {
 public:
  explicit SqlTransaction(SqlConnection& connection) : connection_(connection) {}

  // --- for a change ---

  Result<SqlAnswer> Ask(const std::string& sql, const SqlRow& values);
  // As Ask(), for statements that change something and may have to be undone without the rest.
  Result<SqlAnswer> Change(const std::string& sql, const SqlRow& values);
  // Queues a statement that changes exactly one row.
  void Write(std::string sql, SqlRow values);

  // Returns whether the table has a row with this id; if so, locks it and puts its columns into
  // `answer`.
  Result<bool> Lock(const std::string& table, const std::string& id, const std::string& columns,
                    SqlAnswer& answer);
  // Inserts a row whose first value is its id. Returns false when the id exists already.
  Result<bool> InsertNew(const std::string& table, const std::string& columns, const SqlRow& row);

  // Whether the present change has sent or queued something that can still be undone.
  bool has_written() const { return part_is_open_ || !writes_.empty(); }
  bool part_is_open() const { return part_is_open_; }

  // --- for the owner of the transaction ---

  // The database's reason for the end of a change, whatever the change itself returned.
  struct Failure {
    enum class Kind { kBusy, kRunAgain, kOther };
    Kind kind = Kind::kOther;
    Error error;
  };
  // The owner calls FetchFailure() after each change, and then Keep() or Undo(). After a failure
  // other than kBusy, or of one of these calls, the transaction cannot be used any more.
  std::optional<Failure> FetchFailure();
  Status Keep();
  Status Undo();
  // Sends a statement at the end, when nothing is undone any more.
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

  // The following belong to the present change.
  std::vector<Statement> writes_;  // Queued, not sent.
  bool part_is_open_ = false;
  std::set<std::pair<std::string, std::string>>
      missed_;  // Table and id of rows that did not exist.
  std::optional<Failure> failure_;
};

}  // namespace zeus
