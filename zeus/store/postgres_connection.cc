#include "zeus/store/postgres_connection.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <array>
#include <utility>
#include <vector>

#include "zeus/base/text.h"
#include "zeus/store/postgres_error.h"

namespace zeus {
namespace {

// A job is held for milliseconds. Who waits longer waits for a server that hangs, and a session
// that hangs within a transaction is ended by the database.
constexpr const char* kSession =
    "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'; "
    "SET client_min_messages = 'error'; "
    // What is answered is on disk, whatever the server's default is.
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') = 'off'";

// Of pg_type.dat; stable for ever.
constexpr Oid kInt8 = 20;
constexpr Oid kInt4 = 23;
constexpr Oid kFloat8 = 701;

Result<SqlValue> Field(const PGresult* result, int row, int column) {
  if (PQgetisnull(result, row, column) != 0) return SqlValue();
  const std::string_view text(PQgetvalue(result, row, column),
                              static_cast<std::size_t>(PQgetlength(result, row, column)));
  const Oid type = PQftype(result, column);
  if (type == kInt8 || type == kInt4) {
    ZEUS_TRY(const std::int64_t number, ParseInteger(text));
    return SqlValue(number);
  }
  if (type == kFloat8) {
    ZEUS_TRY(const double number, ParseDouble(text));
    return SqlValue(number);
  }
  return SqlValue(std::string(text));
}

Result<SqlAnswer> AnswerOf(const PGresult* result) {
  SqlAnswer answer;
  if (PQresultStatus(result) == PGRES_COMMAND_OK) {
    const std::string_view changed = PQcmdTuples(const_cast<PGresult*>(result));
    if (!changed.empty()) answer.changed = ParseInteger(changed).value();
    return answer;
  }
  for (int row = 0; row < PQntuples(result); ++row) {
    SqlRow& values = answer.rows.emplace_back();
    for (int column = 0; column < PQnfields(result); ++column) {
      ZEUS_TRY(SqlValue value, Field(result, row, column));
      values.push_back(std::move(value));
    }
  }
  return answer;
}

// Numbers as text, such that they come back the same; texts stay where they are.
struct Parameters {
  explicit Parameters(std::span<const SqlValue> values) : numbers(values.size()) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (const auto* integer = std::get_if<std::int64_t>(&values[i]))
        numbers[i] = fmt::format("{}", *integer);
      else if (const auto* real = std::get_if<double>(&values[i]))
        numbers[i] = fmt::format("{}", *real);
      const auto* text = std::get_if<std::string>(&values[i]);
      const bool null = std::holds_alternative<std::monostate>(values[i]);
      pointers.push_back(null ? nullptr : (text != nullptr ? *text : numbers[i]).c_str());
    }
  }

  std::vector<std::string> numbers;
  std::vector<const char*> pointers;
};

}  // namespace

void PostgresConnection::Clear::operator()(pg_result* result) const { PQclear(result); }

PostgresConnection::~PostgresConnection() { PQfinish(connection_); }

Result<std::unique_ptr<SqlConnection>> PostgresConnection::Open(const std::string& url) {
  ZEUS_RETURN_IF_ERROR(CheckPostgresUrl(url));
  std::unique_ptr<PostgresConnection> connection(new PostgresConnection(url));
  ZEUS_RETURN_IF_ERROR(connection->Connect());
  return std::unique_ptr<SqlConnection>(std::move(connection));
}

bool PostgresConnection::connected() const { return PQstatus(connection_) == CONNECTION_OK; }

Status PostgresConnection::Connect() {
  PQfinish(connection_);
  statements_.clear();
  in_transaction_ = false;
  // What the URL says comes later in the list, and wins.
  constexpr int kDefaults = 4;
  const std::array<const char*, kDefaults + 2> names = {"connect_timeout",  "tcp_user_timeout",
                                                        "application_name", "client_encoding",
                                                        "dbname",           nullptr};
  const std::array<const char*, kDefaults + 2> values = {"10",   "30000",      "zeus",
                                                         "UTF8", url_.c_str(), nullptr};
  connection_ = PQconnectdbParams(names.data(), values.data(), 1);
  const char* host = PQhost(connection_);
  const char* database = PQdb(connection_);
  name_ = fmt::format("PostgreSQL database {} at {}", Quote(database ? database : ""),
                      host != nullptr && *host != '\0' ? Printable(host) : "localhost");
  if (connected()) return PrepareSession();
  trouble_ = SqlTrouble::kOther;
  return ConnectFailure(PQerrorMessage(connection_), name_);
}

Status PostgresConnection::PrepareSession() {
  ZEUS_RETURN_IF_ERROR(Send(kSession));
  return Ok();
}

// Takes the result over. An error also says what it means for the transaction.
Result<PostgresConnection::Answer> PostgresConnection::Checked(pg_result* result) {
  Answer answer(result);
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return answer;
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const bool lost = !connected() || result == nullptr;
  auto failure = FailureOf(lost || state == nullptr ? "08006" : state,
                           message != nullptr ? message : PQerrorMessage(connection_), name_);
  trouble_ = failure.trouble;
  return std::move(failure.error);
}

Result<PostgresConnection::Answer> PostgresConnection::Send(const char* sql) {
  return Checked(PQexec(connection_, sql));
}

Result<std::string> PostgresConnection::Prepared(const std::string& sql) {
  if (const auto found = statements_.find(sql); found != statements_.end()) return found->second;
  std::string name = fmt::format("zeus{}", statements_.size());
  ZEUS_RETURN_IF_ERROR(Checked(PQprepare(connection_, name.c_str(), sql.c_str(), 0, nullptr)));
  statements_.emplace(sql, name);
  return name;
}

Result<SqlAnswer> PostgresConnection::RunPrepared(const std::string& sql,
                                                  std::span<const SqlValue> values) {
  ZEUS_TRY(const std::string name, Prepared(sql));
  const Parameters parameters(values);
  ZEUS_TRY(const Answer answer,
           Checked(PQexecPrepared(connection_, name.c_str(), static_cast<int>(values.size()),
                                  parameters.pointers.data(), nullptr, nullptr, 0)));
  return AnswerOf(answer.get());
}

Result<SqlAnswer> PostgresConnection::Run(const std::string& sql,
                                          std::span<const SqlValue> values) {
  if (in_transaction_) return RunPrepared(sql, values);
  if (connected()) {
    auto answer = RunPrepared(sql, values);
    if (answer.ok() || connected()) return answer;
  }
  ZEUS_RETURN_IF_ERROR(Connect());
  return RunPrepared(sql, values);
}

Status PostgresConnection::Begin() {
  if (!connected()) ZEUS_RETURN_IF_ERROR(Connect());
  auto begun = Send("BEGIN");
  if (!begun.ok() && !connected()) {
    ZEUS_RETURN_IF_ERROR(Connect());
    begun = Send("BEGIN");
  }
  if (!begun.ok()) return std::move(begun).error();
  in_transaction_ = true;
  return Ok();
}

Status PostgresConnection::Commit() {
  in_transaction_ = false;
  auto committed = Send("COMMIT");
  if (!committed.ok()) {
    if (!connected()) trouble_ = SqlTrouble::kCommitUnknown;
    return std::move(committed).error();
  }
  // A transaction that had failed is rolled back instead, which is no error to the server.
  if (std::string_view(PQcmdStatus(committed.value().get())) == "COMMIT") return Ok();
  trouble_ = SqlTrouble::kTransactionLost;
  return Error{ErrorCode::kUnavailable, name_ + ": the transaction was taken back: try again"};
}

void PostgresConnection::Rollback() {
  if (in_transaction_ && connected()) static_cast<void>(Send("ROLLBACK"));
  in_transaction_ = false;
}

}  // namespace zeus
