#include "zeus/store/open_repository.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/store/open_connection.h"
#include "zeus/store/postgres_connection.h"
#include "zeus/store/pq_api.h"
#include "zeus/store/sql_budget_repository.h"
#include "zeus/store/sql_database.h"
#include "zeus/store/sql_duel_repository.h"
#include "zeus/store/sql_repositories.h"
#include "zeus/store/sqlite_connection.h"

namespace zeus {
namespace {

constexpr std::string_view kSqlite = "sqlite:";
constexpr std::string_view kMemory = ":memory:";

bool IsPostgres(std::string_view url) {
  return url.starts_with("postgresql://") || url.starts_with("postgres://");
}

// Quotes the scheme alone where there is one: the rest may contain a password.
Error UnknownUrl(std::string_view url) {
  const std::size_t scheme = url.find(':');
  return Error{
      ErrorCode::kInvalidArgument,
      "not a database we know: " + Quote(scheme == url.npos ? url : url.substr(0, scheme + 1)) +
          ": use sqlite:///absolute/path, sqlite:relative/path, sqlite::memory: or "
          "postgresql://user@host/database"};
}

// Returns the path of a sqlite: URL.
Result<std::filesystem::path> SqlitePath(std::string_view rest) {
  if (rest == kMemory) return std::filesystem::path(rest);
  // SQLAlchemy writes an absolute path after three slashes, others after two.
  if (rest.starts_with("////"))
    rest.remove_prefix(3);
  else if (rest.starts_with("///"))
    rest.remove_prefix(2);
  if (rest.empty() || rest.starts_with("//") || rest.ends_with('/'))
    return Error{ErrorCode::kInvalidArgument,
                 "not a file: " + Quote(rest) +
                     ": use sqlite:///absolute/path/zeus.db or sqlite:relative/path/zeus.db"};
  return std::filesystem::absolute(rest);
}

// Migrates the database with the first writer before readers open it.
Result<std::unique_ptr<ConnectionPool>> Writers(ConnectionPool::Opener open, int most) {
  ZEUS_TRY(auto first, open());
  ZEUS_RETURN_IF_ERROR(Migrate(*first));
  auto pool = std::make_unique<ConnectionPool>(std::move(open), most);
  pool->Add(std::move(first));
  return pool;
}

// Opens the database for reads alone: every change is refused.
Result<std::shared_ptr<SqlDatabase>> OpenOnlyReadable(const std::filesystem::path& file,
                                                      const RepositoryOptions& options) {
  const auto refuse = [file]() -> Result<std::unique_ptr<SqlConnection>> {
    return Error{ErrorCode::kPermissionDenied,
                 file.string() +
                     ": may only be read: you need write permission for the file and its folder"};
  };
  const auto open = [file] {
    return SqliteConnection::Open(file, SqliteConnection::Use::kReadOnlyFile);
  };
  ZEUS_TRY(auto first, open());
  ZEUS_RETURN_IF_ERROR(CheckSchema(*first));
  SqlDatabase::Connections connections;
  connections.writers = std::make_unique<ConnectionPool>(refuse, 1);
  connections.readers = std::make_unique<ConnectionPool>(open, options.most_readers);
  connections.readers->Add(std::move(first));
  return std::make_shared<SqlDatabase>(std::move(connections));
}

Result<std::shared_ptr<SqlDatabase>> OpenSqlite(const std::filesystem::path& file,
                                                const RepositoryOptions& options) {
  const bool in_memory = file == kMemory;
  std::error_code error;
  if (!in_memory && options.access == RepositoryAccess::kReadExisting &&
      !std::filesystem::exists(file, error))
    return Error{
        ErrorCode::kNotFound,
        Printable(file.string()) + ": there is no such database, so no job has run with it"};
  if (!in_memory && options.access != RepositoryAccess::kWrite && IsOnlyReadable(file))
    return OpenOnlyReadable(file, options);
  if (!in_memory) ZEUS_RETURN_IF_ERROR(PrepareSqliteFile(file));
  SqlDatabase::Connections connections;
  ZEUS_TRY(
      connections.writers,
      Writers([file] { return SqliteConnection::Open(file, SqliteConnection::Use::kReadAndWrite); },
              1));
  if (!in_memory)
    connections.readers = std::make_unique<ConnectionPool>(
        [file] { return SqliteConnection::Open(file, SqliteConnection::Use::kReadOnly); },
        options.most_readers);
  return std::make_shared<SqlDatabase>(std::move(connections));
}

Result<std::shared_ptr<SqlDatabase>> OpenPostgres(const std::string& url,
                                                  const RepositoryOptions& options) {
  ZEUS_TRY(const PqApi pq, LoadPq());
  const auto open = [pq, url] { return PostgresConnection::Open(pq, url); };
  SqlDatabase::Connections connections;
  connections.most_writers = options.most_postgres_writers;
  ZEUS_TRY(connections.writers, Writers(open, connections.most_writers));
  connections.readers = std::make_unique<ConnectionPool>(open, options.most_readers);
  return std::make_shared<SqlDatabase>(std::move(connections));
}

Result<std::shared_ptr<SqlDatabase>> OpenDatabase(const std::string& url,
                                                  const RepositoryOptions& options) {
  if (IsPostgres(url)) return OpenPostgres(url, options);
  if (!url.starts_with(kSqlite)) return UnknownUrl(url);
  ZEUS_TRY(const std::filesystem::path file,
           SqlitePath(std::string_view(url).substr(kSqlite.size())));
  return OpenSqlite(file, options);
}

}  // namespace

Result<std::unique_ptr<SqlConnection>> OpenConnection(const std::string& url, ConnectionUse use) {
  if (IsPostgres(url)) {
    ZEUS_TRY(const PqApi pq, LoadPq());
    return PostgresConnection::Open(pq, url);
  }
  if (!url.starts_with(kSqlite)) return UnknownUrl(url);
  ZEUS_TRY(const std::filesystem::path file,
           SqlitePath(std::string_view(url).substr(kSqlite.size())));
  if (file == kMemory)
    return InvalidArgument("sqlite::memory: ends with its process: name a file or a server");
  if (use == ConnectionUse::kWrite) {
    ZEUS_RETURN_IF_ERROR(PrepareSqliteFile(file));
    return SqliteConnection::Open(file, SqliteConnection::Use::kReadAndWrite);
  }
  std::error_code failure;
  if (!std::filesystem::exists(file, failure))
    return Error{ErrorCode::kNotFound, file.string() + ": there is no such database"};
  return SqliteConnection::Open(file, IsOnlyReadable(file) ? SqliteConnection::Use::kReadOnlyFile
                                                           : SqliteConnection::Use::kReadOnly);
}

Result<Store> OpenStore(const std::string& url, const RepositoryOptions& options) {
  ZEUS_TRY(const std::shared_ptr<SqlDatabase> database, OpenDatabase(url, options));
  return Store{.jobs = std::make_unique<SqlJobRepository>(database),
               .plans = std::make_unique<SqlPlanRepository>(database),
               .sessions = std::make_unique<SqlSessionRepository>(database),
               .duels = std::make_unique<SqlDuelRepository>(database),
               .budget = std::make_unique<SqlBudgetRepository>(database)};
}

Result<std::unique_ptr<JobRepository>> OpenRepository(const std::string& url,
                                                      const RepositoryOptions& options) {
  ZEUS_TRY(Store store, OpenStore(url, options));
  return std::move(store.jobs);
}

Result<std::string> DefaultDatabaseUrl(const Environment& environment) {
  std::filesystem::path folder;
  if (const auto data = environment("XDG_DATA_HOME"); data && data->starts_with('/'))
    folder = *data;
  else if (const auto home = environment("HOME"); home && home->starts_with('/'))
    folder = std::filesystem::path(*home) / ".local/share";
  else
    return Error{ErrorCode::kInvalidArgument,
                 "no folder for the database: set HOME, or name one with --database"};
  return "sqlite://" + (folder / "zeus/zeus.db").string();
}

}  // namespace zeus
