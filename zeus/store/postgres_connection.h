#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "zeus/store/pq_api.h"
#include "zeus/store/sql_connection.h"

namespace zeus {

// A session on a PostgreSQL server (libpq), READ COMMITTED: locking a row shows its latest state.
// Transactions use libpq's pipeline mode: only a Run() and the Commit() wait for the server.
// When the connection was lost, the next Begin() or read connects again.
class PostgresConnection final : public SqlConnection {
 public:
  // Returns kInvalidArgument when libpq does not understand the postgresql:// URL.
  static Result<std::unique_ptr<SqlConnection>> Open(const PqApi& pq, const std::string& url);

  ~PostgresConnection() override;
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  SqlDialect dialect() const override { return SqlDialect::kPostgres; }
  const std::string& name() const override { return name_; }
  Result<SqlAnswer> Run(const std::string& sql, std::span<const SqlValue> values) override;
  Status Post(const std::string& sql, std::span<const SqlValue> values) override;
  SqlTrouble trouble() const override { return trouble_; }
  Status Begin() override;
  Status Commit() override;
  void Rollback() override;

 private:
  using Answer = std::unique_ptr<PGresult, decltype(PqApi::clear)>;

  PostgresConnection(const PqApi& pq, std::string url) : pq_(pq), url_(std::move(url)) {}

  // A statement that was sent and not answered yet.
  struct Sent {
    enum class Kind { kPreparation, kOneRow, kAnything };
    Kind kind = Kind::kAnything;
    std::string sql{};
  };

  Status Connect();
  bool connected() const;
  Result<Answer> Checked(PGresult* result);
  Result<Answer> CheckedFor(const Sent& sent, PGresult* result);
  Result<std::string> Prepared(const std::string& sql);
  Result<SqlAnswer> RunAlone(const std::string& sql, std::span<const SqlValue> values);

  // The following are used within a transaction.
  Status Send(Sent sent, std::span<const SqlValue> values);
  Status SendCommand(const char* sql);
  Result<Answer> Receive();  // Returns the answer to the last statement, or the first error.
  void EndTransaction();

  const PqApi pq_;
  const std::string url_;
  std::string name_;
  PGconn* connection_ = nullptr;
  std::unordered_map<std::string, std::string>
      statements_;  // Maps SQL to the statement's name on the server.
  int names_ = 0;   // The number of names given so far.
  std::vector<Sent> sent_;
  SqlTrouble trouble_ = SqlTrouble::kNone;
  bool in_transaction_ = false;
};

}  // namespace zeus
