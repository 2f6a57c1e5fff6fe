#include "zeus/store/sqlite_connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"

namespace zeus {
namespace {

constexpr int kBusyMilliseconds = 10'000;
constexpr int kConfigureAttempts = 100;
constexpr int kConfigurePauseMilliseconds = 20;
constexpr std::int64_t kApplicationId = 0x5A455553;  // "ZEUS", at byte 68 of the file.

int Bind(sqlite3_stmt* statement, int index, const SqlValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    return sqlite3_bind_int64(statement, index, *integer);
  if (const auto* real = std::get_if<double>(&value))
    return sqlite3_bind_double(statement, index, *real);
  if (const auto* text = std::get_if<std::string>(&value))
    return sqlite3_bind_text64(statement, index, text->data(), text->size(), SQLITE_STATIC,
                               SQLITE_UTF8);
  return sqlite3_bind_null(statement, index);
}

// SQLite numbers $1 and $2 in the order of their appearance, so each is bound by its name.
int BindAll(sqlite3_stmt* statement, std::span<const SqlValue> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int index = sqlite3_bind_parameter_index(statement, fmt::format("${}", i + 1).c_str());
    if (index == 0) continue;
    if (const int code = Bind(statement, index, values[i]); code != SQLITE_OK) return code;
  }
  return SQLITE_OK;
}

SqlValue Column(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return std::int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_NULL:
      return std::monostate();
    default: {
      const auto* text = static_cast<const char*>(sqlite3_column_blob(statement, column));
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
      return text == nullptr ? std::string() : std::string(text, size);
    }
  }
}

// Returns the SQLite URI of a file, in which special characters are escaped.
std::string MakeUri(const std::filesystem::path& file, const char* mode) {
  std::string uri = "file:";
  for (const char c : file.string()) {
    const bool special = c == '?' || c == '#' || c == '%';
    uri += special ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return uri + "?" + mode;
}

struct SqliteMeaning {
  ErrorCode code;
  const char* advice;
};

SqliteMeaning FindMeaning(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::kUnavailable, "another process holds the database: try again"};
    case SQLITE_FULL:
      return {ErrorCode::kUnavailable, "the disk is full: make room and try again"};
    case SQLITE_IOERR:
      return {ErrorCode::kUnavailable, "the disk does not answer as it should: see dmesg"};
    case SQLITE_CANTOPEN:
      return {ErrorCode::kUnavailable, "cannot be opened: look at the folder and its permissions"};
    case SQLITE_READONLY:  // The file was writable when it was opened.
      return {ErrorCode::kUnavailable,
              "cannot be written any more: look at the permissions of the file and its folder"};
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return {ErrorCode::kPermissionDenied,
              "cannot be written: you need write permission for the file and its folder"};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {ErrorCode::kInternal, "the database is damaged: restore a copy (docs/store.md)"};
    case SQLITE_CONSTRAINT:
      return {ErrorCode::kConflict, "at odds with what is stored"};
    default:
      return {ErrorCode::kInternal, "the database does not understand us"};
  }
}

constexpr off_t kSmallestPage = 512;

Status MakeFolders(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (folder.empty() || std::filesystem::is_directory(folder, ignored)) return Ok();
  ZEUS_RETURN_IF_ERROR(MakeFolders(folder.parent_path()));
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) return FileError(folder, errno);
  return Ok();
}

// Syncs the folder: until then the new file's name is not on disk.
Status SyncFolder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder.empty() ? "." : folder;
  const FileDescriptor descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.valid() || ::fsync(descriptor.get()) != 0) return FileError(path, errno);
  return Ok();
}

}  // namespace

SqliteConnection::SqliteConnection(sqlite3* database, std::string name)
    : database_(database), name_(std::move(name)) {}

SqliteConnection::~SqliteConnection() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(database_);
}

// Tries to open the file like any reader first. A database in WAL mode needs files beside it; when
// SQLite cannot create those, no writer has the database open either, and it is opened as an
// immutable file.
Result<std::unique_ptr<SqlConnection>> SqliteConnection::OpenReadOnlyFile(
    const std::filesystem::path& file) {
  Status failed = Ok();
  for (const char* const mode : {"mode=ro", "immutable=1"}) {
    sqlite3* database = nullptr;
    const int flags =
        SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    const int code = sqlite3_open_v2(MakeUri(file, mode).c_str(), &database, flags, nullptr);
    std::unique_ptr<SqliteConnection> connection(new SqliteConnection(database, file.string()));
    failed = code == SQLITE_OK ? connection->Configure(Use::kReadOnlyFile)
                               : Status(connection->Failure(code));
    if (failed.ok()) return std::unique_ptr<SqlConnection>(std::move(connection));
    if (failed.error().code == ErrorCode::kInvalidArgument)
      break;  // The file belongs to another program.
  }
  return std::move(failed).error();
}

Result<std::unique_ptr<SqlConnection>> SqliteConnection::Open(const std::filesystem::path& file,
                                                              Use use) {
  if (use == Use::kReadOnlyFile) return OpenReadOnlyFile(file);
  sqlite3* database = nullptr;
  // One thread at a time uses a connection, so SQLite's own mutexes are unnecessary.
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(file.c_str(), &database, flags, nullptr);
  std::unique_ptr<SqliteConnection> connection(new SqliteConnection(database, file.string()));
  if (code != SQLITE_OK) return connection->Failure(code);
  // SQLite's busy timeout does not cover a process that initialises the file or turns it to WAL.
  Status ready = connection->Configure(use);
  for (int attempt = 0; attempt < kConfigureAttempts && !ready.ok() && ready.error().retryable();
       ++attempt) {
    sqlite3_sleep(kConfigurePauseMilliseconds);
    ready = connection->Configure(use);
  }
  if (!ready.ok()) return std::move(ready).error();
  return std::unique_ptr<SqlConnection>(std::move(connection));
}

Status SqliteConnection::Configure(Use use) {
  sqlite3_busy_timeout(database_, kBusyMilliseconds);
  if (use == Use::kReadOnlyFile) return RefuseOtherPrograms(use);
  if (use == Use::kReadAndWrite) {
    ZEUS_RETURN_IF_ERROR(RefuseOtherPrograms(use));
    ZEUS_RETURN_IF_ERROR(Run("PRAGMA journal_mode = WAL", {}));
    ZEUS_RETURN_IF_ERROR(Run("PRAGMA synchronous = FULL", {}));
    ZEUS_RETURN_IF_ERROR(Run("PRAGMA journal_size_limit = 67108864", {}));
  } else {
    ZEUS_RETURN_IF_ERROR(Run("PRAGMA query_only = ON", {}));
  }
  return Ok();
}

// Our databases carry our application id, which is set before the first table exists. A database
// without tables belongs to no program and becomes ours. One statement reads both values, so that
// they belong to one moment.
Status SqliteConnection::RefuseOtherPrograms(Use use) {
  const auto answer = Run(
      "SELECT application_id, (SELECT count(*) FROM sqlite_master) FROM pragma_application_id", {});
  if (!answer.ok() && sqlite3_errcode(database_) == SQLITE_NOTADB)
    return Error{ErrorCode::kInvalidArgument, name_ + ": is not a database: choose another file"};
  if (!answer.ok()) return answer.error();
  const SqlRow& row = answer.value().rows.at(0);
  if (row.at(0) == SqlValue(kApplicationId)) return Ok();
  const bool is_nobodys =
      row.at(0) == SqlValue(std::int64_t{0}) && row.at(1) == SqlValue(std::int64_t{0});
  if (!is_nobodys || use == Use::kReadOnlyFile)
    return Error{ErrorCode::kInvalidArgument,
                 name_ + ": belongs to another program: choose another file"};
  ZEUS_RETURN_IF_ERROR(Run(fmt::format("PRAGMA application_id = {}", kApplicationId), {}));
  return Ok();
}

Result<sqlite3_stmt*> SqliteConnection::Prepared(const std::string& sql) {
  if (const auto found = statements_.find(sql); found != statements_.end()) return found->second;
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(database_, sql.c_str(), static_cast<int>(sql.size() + 1),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return Failure(code);
  statements_.emplace(sql, statement);
  return statement;
}

// Changes to a file that was deleted or replaced would be lost with the process.
Status SqliteConnection::CheckStillThere() {
  int moved = 0;
  sqlite3_file_control(database_, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved == 0) return Ok();
  trouble_ = SqlTrouble::kOther;
  return Error{ErrorCode::kUnavailable,
               name_ + ": was moved or deleted: put it back, or start again with another file"};
}

Result<SqlAnswer> SqliteConnection::Run(const std::string& sql, std::span<const SqlValue> values) {
  if (!in_transaction_) ZEUS_RETURN_IF_ERROR(CheckStillThere());
  ZEUS_TRY(sqlite3_stmt* const statement, Prepared(sql));
  if (const int code = BindAll(statement, values); code != SQLITE_OK) return Failure(code);
  auto answer = Step(statement);
  // An open statement would hold a snapshot, and the bound texts do not outlive this call.
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  return answer;
}

Status SqliteConnection::Post(const std::string& sql, std::span<const SqlValue> values) {
  ZEUS_TRY(const SqlAnswer answer, Run(sql, values));
  if (answer.changed == 1) return Ok();
  trouble_ = SqlTrouble::kOther;
  return NotOneRow(answer.changed);
}

Result<SqlAnswer> SqliteConnection::Step(sqlite3_stmt* statement) {
  SqlAnswer answer;
  int code = sqlite3_step(statement);
  for (; code == SQLITE_ROW; code = sqlite3_step(statement)) {
    SqlRow& row = answer.rows.emplace_back();
    const int columns = sqlite3_data_count(statement);
    row.reserve(static_cast<std::size_t>(columns));
    for (int column = 0; column < columns; ++column) row.push_back(Column(statement, column));
  }
  if (code != SQLITE_DONE) return Failure(code);
  if (sqlite3_stmt_readonly(statement) == 0) answer.changed = sqlite3_changes64(database_);
  return answer;
}

Error SqliteConnection::Failure(int code) {
  const bool lost = in_transaction_ && sqlite3_get_autocommit(database_) != 0;
  trouble_ = lost ? SqlTrouble::kTransactionLost : SqlTrouble::kOther;
  const SqliteMeaning meaning = FindMeaning(code);
  return Error{meaning.code,
               fmt::format("{}: {} ({})", name_, meaning.advice, sqlite3_errmsg(database_))};
}

// Acquires the write lock at once: a transaction that begins by reading cannot get it any more once
// another process has written.
Status SqliteConnection::Begin() {
  ZEUS_RETURN_IF_ERROR(Run("BEGIN IMMEDIATE", {}));
  in_transaction_ = true;
  return Ok();
}

Status SqliteConnection::Commit() {
  auto committed = Run("COMMIT", {});
  if (!committed.ok()) {
    Rollback();
    return std::move(committed).error();
  }
  in_transaction_ = false;
  return Ok();
}

void SqliteConnection::Rollback() {
  if (sqlite3_get_autocommit(database_) == 0) static_cast<void>(Run("ROLLBACK", {}));
  in_transaction_ = false;
}

// --- the file of a database ---

bool IsOnlyReadable(const std::filesystem::path& file) {
  if (::access(file.c_str(), R_OK) != 0) return false;
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  return ::access(file.c_str(), W_OK) != 0 || ::access(folder.c_str(), W_OK) != 0;
}

Status PrepareSqliteFile(const std::filesystem::path& file) {
  ZEUS_RETURN_IF_ERROR(MakeFolders(file.parent_path()));
  // SQLite creates its further files with the same permissions.
  const FileDescriptor created(
      ::open(file.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (created.valid()) return SyncFolder(file.parent_path());
  // The file is not opened here: closing it would release the locks of SQLite connections that this
  // process has to the same file (POSIX).
  if (errno != EEXIST) return FileError(file, errno);
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return FileError(file, errno);
  // SQLite would treat a file that is too short for its header as an empty database.
  const bool too_short = status.st_size > 0 && status.st_size < kSmallestPage;
  if (!S_ISREG(status.st_mode) || too_short)
    return Error{ErrorCode::kInvalidArgument,
                 file.string() + ": is not a database: choose another file"};
  if (::access(file.c_str(), W_OK) != 0) return FileError(file, errno);
  return Ok();
}

}  // namespace zeus
