#include "zeus/store/postgres_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/text.h"
#include "zeus/store/sql_connection.h"

namespace zeus {
namespace {

// --- the meaning of errors (PostgreSQL manual, appendix A) ---

struct PostgresFailure {
  SqlTrouble trouble = SqlTrouble::kOther;
  Error error;
};

struct PostgresMeaning {
  std::string_view state;  // SQLSTATE, or its first two characters: the class.
  SqlTrouble trouble;
  ErrorCode code;
  const char* advice;
};

// The first entry that matches counts.
constexpr PostgresMeaning kMeanings[] = {
    {"40", SqlTrouble::kTransactionLost, ErrorCode::kUnavailable,
     "another server was in the way: try again"},
    {"55P03", SqlTrouble::kOther, ErrorCode::kUnavailable,
     "another server holds the job: try again"},
    {"08", SqlTrouble::kTransactionLost, ErrorCode::kUnavailable,
     "the connection was lost: try again"},
    {"57P0", SqlTrouble::kTransactionLost, ErrorCode::kUnavailable,
     "the database is shutting down or starting: try again"},
    {"25P03", SqlTrouble::kTransactionLost, ErrorCode::kUnavailable,
     "this process was stopped for so long that the database gave up on it: try again"},
    {"57", SqlTrouble::kOther, ErrorCode::kUnavailable, "the database cut it short: try again"},
    {"53", SqlTrouble::kOther, ErrorCode::kUnavailable,
     "the database has no room (disk, memory or connections): make some and try again"},
    {"58", SqlTrouble::kOther, ErrorCode::kUnavailable,
     "the disk of the database does not answer as it should: see its log"},
    {"23", SqlTrouble::kOther, ErrorCode::kConflict, "at odds with what is stored"},
    {"22", SqlTrouble::kOther, ErrorCode::kInvalidArgument, "the database cannot hold a value"},
    {"25006", SqlTrouble::kOther, ErrorCode::kUnavailable,
     "the database only reads: name the primary, not a standby"},
    {"28", SqlTrouble::kOther, ErrorCode::kPermissionDenied,
     "the database does not let us in: see user and password of the URL, and pg_hba.conf"},
    {"42501", SqlTrouble::kOther, ErrorCode::kPermissionDenied,
     "the user of the URL needs CREATE on the schema and all rights on its tables"},
    {"42P07", SqlTrouble::kOther, ErrorCode::kConflict,
     "there are tables of another program: use a database of its own"},
};
constexpr PostgresMeaning kUnknown = {"", SqlTrouble::kOther, ErrorCode::kInternal,
                                      "the database does not understand us"};

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string FirstLine(std::string_view text) {
  return Printable(Trim(text.substr(0, text.find('\n'))));
}

// `state` is the five characters of SQLSTATE, `message` the server's own first line.
PostgresFailure ClassifyFailure(std::string_view state, std::string_view message,
                                const std::string& server) {
  const auto* found = std::ranges::find_if(
      kMeanings, [&](const PostgresMeaning& meaning) { return state.starts_with(meaning.state); });
  const PostgresMeaning& meaning = found == std::end(kMeanings) ? kUnknown : *found;
  return {meaning.trouble,
          Error{meaning.code, server + ": " + meaning.advice + " (" + FirstLine(message) + ")"}};
}

// The error for a connection that could not be made, for which the server gives a text but no code.
Error ConnectFailure(std::string_view message, const std::string& server) {
  const auto failure = [&](ErrorCode code, const std::string& advice) {
    return Error{code, server + ": " + advice + " (" + FirstLine(message) + ")"};
  };
  if (Contains(message, "authentication failed") || Contains(message, "no password supplied") ||
      Contains(message, "pg_hba.conf") || Contains(message, "role \""))
    return failure(ErrorCode::kPermissionDenied,
                   "the database does not let us in: see user and password of the URL");
  if (Contains(message, "database \"") && Contains(message, "does not exist"))
    return failure(ErrorCode::kNotFound, "there is no such database: make it with createdb");
  return failure(ErrorCode::kUnavailable, "cannot connect: is the database running?");
}

// Returns kInvalidArgument when libpq would mistake a part of the password for a host and print it.
Status CheckPostgresUrl(const PqApi& pq, const std::string& url) {
  const std::size_t start = url.find("://") + 3;
  const std::string authority = url.substr(start, url.find_first_of("/?", start) - start);
  // The message must not quote the URL: the part that libpq misreads may be the password.
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> parsed(
      pq.parse_url(url.c_str(), nullptr), pq.free_parsed_url);
  if (parsed && std::ranges::count(authority, '@') <= 1) return Ok();
  return Error{ErrorCode::kInvalidArgument,
               "the postgresql:// URL cannot be read: it is "
               "postgresql://user:password@host:port/database, and special characters in the "
               "password are written as %40 for @, %2F for /, %25 for %"};
}

// --- values ---

// A job is locked for milliseconds. A longer wait means that another server hangs, and the database
// ends a session that hangs within a transaction.
constexpr const char* kSession =
    "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'; "
    "SET client_min_messages = 'error'; "
    // A query plan made while a table was small would be kept after it has grown. All our queries
    // have an index.
    "SET enable_seqscan = off; "
    // An answered commit is on disk, whatever the server's default is.
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') = 'off'";

// Type numbers from pg_type.dat, which never change.
constexpr Oid kInt8 = 20;
constexpr Oid kInt4 = 23;
constexpr Oid kFloat8 = 701;

Result<SqlValue> Field(const PqApi& pq, const PGresult* result, int row, int column) {
  if (pq.is_null(result, row, column) != 0) return SqlValue();
  const std::string_view text(pq.value(result, row, column),
                              static_cast<std::size_t>(pq.length(result, row, column)));
  const Oid type = pq.column_type(result, column);
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

std::int64_t ChangedBy(const PqApi& pq, const PGresult* result) {
  const std::string_view changed = pq.command_tuples(const_cast<PGresult*>(result));
  return changed.empty() ? 0 : ParseInteger(changed).value();
}

Result<SqlAnswer> AnswerOf(const PqApi& pq, const PGresult* result) {
  SqlAnswer answer;
  if (pq.result_status(result) == PGRES_COMMAND_OK) {
    answer.changed = ChangedBy(pq, result);
    return answer;
  }
  for (int row = 0; row < pq.rows(result); ++row) {
    SqlRow& values = answer.rows.emplace_back();
    for (int column = 0; column < pq.columns(result); ++column) {
      ZEUS_TRY(SqlValue value, Field(pq, result, row, column));
      values.push_back(std::move(value));
    }
  }
  return answer;
}

// Numbers are formatted so that they are read back unchanged; texts are not copied.
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

PostgresConnection::~PostgresConnection() { pq_.finish(connection_); }

Result<std::unique_ptr<SqlConnection>> PostgresConnection::Open(const PqApi& pq,
                                                                const std::string& url) {
  ZEUS_RETURN_IF_ERROR(CheckPostgresUrl(pq, url));
  std::unique_ptr<PostgresConnection> connection(new PostgresConnection(pq, url));
  ZEUS_RETURN_IF_ERROR(connection->Connect());
  return std::unique_ptr<SqlConnection>(std::move(connection));
}

bool PostgresConnection::connected() const { return pq_.status(connection_) == CONNECTION_OK; }

Status PostgresConnection::Connect() {
  pq_.finish(connection_);
  statements_.clear();
  sent_.clear();
  in_transaction_ = false;
  // The URL comes later in the list, so its settings override these.
  constexpr int kDefaults = 4;
  const std::array<const char*, kDefaults + 2> names = {"connect_timeout",  "tcp_user_timeout",
                                                        "application_name", "client_encoding",
                                                        "dbname",           nullptr};
  const std::array<const char*, kDefaults + 2> values = {"10",   "30000",      "zeus",
                                                         "UTF8", url_.c_str(), nullptr};
  connection_ = pq_.connect(names.data(), values.data(), 1);
  const char* host = pq_.host(connection_);
  const char* database = pq_.database(connection_);
  name_ = fmt::format("PostgreSQL database {} at {}", Quote(database ? database : ""),
                      host != nullptr && *host != '\0' ? Printable(host) : "localhost");
  if (!connected()) {
    trouble_ = SqlTrouble::kOther;
    return ConnectFailure(pq_.error_message(connection_), name_);
  }
  ZEUS_RETURN_IF_ERROR(Checked(pq_.execute(connection_, kSession)));
  return Ok();
}

// Owns the result from here on. For an error, sets trouble_ as well.
Result<PostgresConnection::Answer> PostgresConnection::Checked(PGresult* result) {
  Answer answer(result, pq_.clear);
  const ExecStatusType status = pq_.result_status(result);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return answer;
  const char* state = pq_.result_error_field(result, PG_DIAG_SQLSTATE);
  const char* message = pq_.result_error_field(result, PG_DIAG_MESSAGE_PRIMARY);
  const bool lost = !connected() || state == nullptr;
  auto failure = ClassifyFailure(
      lost ? "08006" : state, message != nullptr ? message : pq_.error_message(connection_), name_);
  trouble_ = failure.trouble;
  return std::move(failure.error);
}

// --- reading, outside transactions ---

Result<std::string> PostgresConnection::Prepared(const std::string& sql) {
  if (const auto found = statements_.find(sql); found != statements_.end()) return found->second;
  std::string name = fmt::format("zeus{}", ++names_);
  ZEUS_RETURN_IF_ERROR(Checked(pq_.prepare(connection_, name.c_str(), sql.c_str(), 0, nullptr)));
  statements_.emplace(sql, name);
  return name;
}

Result<SqlAnswer> PostgresConnection::RunAlone(const std::string& sql,
                                               std::span<const SqlValue> values) {
  ZEUS_TRY(const std::string name, Prepared(sql));
  const Parameters parameters(values);
  ZEUS_TRY(const Answer answer,
           Checked(pq_.execute_prepared(connection_, name.c_str(), static_cast<int>(values.size()),
                                        parameters.pointers.data(), nullptr, nullptr, 0)));
  return AnswerOf(pq_, answer.get());
}

Result<SqlAnswer> PostgresConnection::Run(const std::string& sql,
                                          std::span<const SqlValue> values) {
  if (in_transaction_) {
    ZEUS_RETURN_IF_ERROR(Send({.sql = sql}, values));
    ZEUS_TRY(const Answer answer, Receive());
    return AnswerOf(pq_, answer.get());
  }
  if (connected()) {
    auto answer = RunAlone(sql, values);
    if (answer.ok() || connected()) return answer;
  }
  ZEUS_RETURN_IF_ERROR(Connect());
  return RunAlone(sql, values);
}

// --- transactions ---

Status PostgresConnection::Post(const std::string& sql, std::span<const SqlValue> values) {
  ZEUS_RETURN_IF_ERROR(Send({Sent::Kind::kOneRow, sql}, values));
  pq_.flush(connection_);  // The server works on the statement while we go on.
  return Ok();
}

Status PostgresConnection::Send(Sent sent, std::span<const SqlValue> values) {
  if (!statements_.contains(sent.sql)) {
    const std::string name = fmt::format("zeus{}", ++names_);
    if (pq_.send_prepare(connection_, name.c_str(), sent.sql.c_str(), 0, nullptr) == 0)
      return Checked(nullptr).error();
    statements_.emplace(sent.sql, name);
    sent_.push_back({Sent::Kind::kPreparation, sent.sql});
  }
  const Parameters parameters(values);
  if (pq_.send_query_prepared(connection_, statements_.at(sent.sql).c_str(),
                              static_cast<int>(values.size()), parameters.pointers.data(), nullptr,
                              nullptr, 0) == 0)
    return Checked(nullptr).error();
  sent_.push_back(std::move(sent));
  return Ok();
}

Status PostgresConnection::SendCommand(const char* sql) {
  if (pq_.send_query_params(connection_, sql, 0, nullptr, nullptr, nullptr, nullptr, 0) == 0)
    return Checked(nullptr).error();
  sent_.push_back({});
  return Ok();
}

Result<PostgresConnection::Answer> PostgresConnection::CheckedFor(const Sent& sent,
                                                                  PGresult* result) {
  auto answer = Checked(result);
  if (!answer.ok() && sent.kind == Sent::Kind::kPreparation) statements_.erase(sent.sql);
  if (!answer.ok() || sent.kind != Sent::Kind::kOneRow) return answer;
  const std::int64_t changed = ChangedBy(pq_, answer.value().get());
  if (changed == 1) return answer;
  trouble_ = SqlTrouble::kOther;
  return NotOneRow(changed);
}

Result<PostgresConnection::Answer> PostgresConnection::Receive() {
  const std::vector<Sent> sent = std::exchange(sent_, {});
  if (pq_.pipeline_sync(connection_) == 0) return Checked(nullptr).error();
  Result<Answer> answer = Answer(nullptr, pq_.clear);
  SqlTrouble trouble = SqlTrouble::kNone;
  for (const Sent& one : sent) {
    auto next = CheckedFor(one, pq_.get_result(connection_));
    while (PGresult* more = connected() ? pq_.get_result(connection_) : nullptr) pq_.clear(more);
    if (!answer.ok()) continue;  // The server skips the statements after an error.
    answer = std::move(next);
    trouble = trouble_;
  }
  pq_.clear(pq_.get_result(connection_));  // The result of the synchronisation.
  if (!answer.ok()) trouble_ = connected() ? trouble : SqlTrouble::kTransactionLost;
  return answer;
}

// BEGIN is sent with the first statement, which fails if the server went away since the last
// transaction.
Status PostgresConnection::Begin() {
  if (!connected()) ZEUS_RETURN_IF_ERROR(Connect());
  if (pq_.enter_pipeline_mode(connection_) == 0) return Checked(nullptr).error();
  in_transaction_ = true;
  return SendCommand("BEGIN");
}

Status PostgresConnection::Commit() {
  ZEUS_RETURN_IF_ERROR(SendCommand("COMMIT"));
  auto answer = Receive();
  // The server answers COMMIT of a failed transaction with a rollback, and without an error.
  const bool taken_back =
      answer.ok() && std::string_view(pq_.command_status(answer.value().get())) != "COMMIT";
  if (answer.ok() && !taken_back) {
    EndTransaction();
    return Ok();
  }
  // The server may have committed and gone away before it answered.
  const bool unknown = !taken_back && trouble_ == SqlTrouble::kTransactionLost;
  const SqlTrouble trouble = unknown      ? SqlTrouble::kCommitUnknown
                             : taken_back ? SqlTrouble::kTransactionLost
                                          : trouble_;
  Rollback();
  trouble_ = trouble;
  if (!answer.ok()) return std::move(answer).error();
  return Error{ErrorCode::kUnavailable, name_ + ": the changes were taken back: try again"};
}

void PostgresConnection::Rollback() {
  if (!in_transaction_) return;
  if (connected() && SendCommand("ROLLBACK").ok()) static_cast<void>(Receive());
  EndTransaction();
}

// A session that is not idle now is closed, and the next transaction opens a new one.
void PostgresConnection::EndTransaction() {
  in_transaction_ = false;
  sent_.clear();
  if (pq_.exit_pipeline_mode(connection_) == 0 ||
      pq_.transaction_status(connection_) != PQTRANS_IDLE) {
    pq_.finish(connection_);
    connection_ = nullptr;
  }
}

}  // namespace zeus
