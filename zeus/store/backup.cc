// A backup is lines of JSON: a head, then for each table its name and columns, followed by its rows
// as arrays, and at the end the number of rows. All rows are read in one transaction, which sees
// the database as it was when it began. A file of an older schema is loaded into a database in
// memory of that schema, which the usual migrations then bring up to date.
#include "zeus/store/backup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/store/open_connection.h"
#include "zeus/store/sql_connection.h"
#include "zeus/store/sql_database.h"
#include "zeus/store/sqlite_connection.h"

namespace zeus {
namespace {

constexpr const char* kFormat = "zeus.backup/1";

struct Table {
  std::string name{};
  std::vector<std::string> columns{};
};

// Receives a row after the table that it belongs to.
using RowSink = std::function<Status(const Table& table, SqlRow row)>;

// --- reading a database ---

Result<std::vector<std::string>> Texts(Result<SqlAnswer> asked) {
  ZEUS_TRY(SqlAnswer answer, std::move(asked));
  std::vector<std::string> texts;
  for (SqlRow& row : answer.rows) texts.push_back(std::get<std::string>(std::move(row.at(0))));
  return texts;
}

Result<std::vector<std::string>> TableNames(SqlConnection& connection) {
  ZEUS_TRY(std::vector<std::string> names,
           Texts(connection.Run(
               connection.dialect() == SqlDialect::kSqlite
                   ? "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
                   : "SELECT table_name::text FROM information_schema.tables "
                     "WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' "
                     "ORDER BY table_name")));
  std::erase_if(names, [](const std::string& name) {
    return name == "zeus_migrations" || name == "zeus_probe" || name.starts_with("sqlite_");
  });
  return names;
}

Result<Table> Describe(SqlConnection& connection, const std::string& name) {
  const SqlValue value = name;
  ZEUS_TRY(std::vector<std::string> columns,
           Texts(connection.Run(connection.dialect() == SqlDialect::kSqlite
                                    ? "SELECT name FROM pragma_table_info($1) ORDER BY cid"
                                    : "SELECT column_name::text FROM information_schema.columns "
                                      "WHERE table_schema = current_schema() AND "
                                      "table_name::text = $1::text ORDER BY ordinal_position",
                                std::span(&value, 1))));
  return Table{.name = name, .columns = std::move(columns)};
}

bool HasColumn(const Table& table, std::string_view name) {
  return std::ranges::find(table.columns, name) != table.columns.end();
}

Status PassRows(SqlConnection& connection, const Table& table, const std::string& condition,
                std::span<const SqlValue> values, const RowSink& sink) {
  ZEUS_TRY(SqlAnswer answer,
           connection.Run(fmt::format("SELECT {} FROM {}{}", fmt::join(table.columns, ", "),
                                      table.name, condition),
                          values));
  for (SqlRow& row : answer.rows) ZEUS_RETURN_IF_ERROR(sink(table, std::move(row)));
  return Ok();
}

// Passes all rows on. The rows of jobs, which may be many, are read job by job.
Status PassTable(SqlConnection& connection, const Table& table, const RowSink& sink) {
  if (!HasColumn(table, "job_id")) return PassRows(connection, table, "", {}, sink);
  ZEUS_TRY(const std::vector<std::string> jobs,
           Texts(connection.Run(
               fmt::format("SELECT DISTINCT job_id FROM {} ORDER BY job_id", table.name))));
  for (const std::string& job : jobs) {
    const SqlValue id = job;
    ZEUS_RETURN_IF_ERROR(
        PassRows(connection, table, " WHERE job_id = $1", std::span(&id, 1), sink));
  }
  return Ok();
}

// Passes on all rows of all tables. `begin` is called for each table before its rows.
Status PassDatabase(SqlConnection& connection, const std::function<Status(const Table&)>& begin,
                    const RowSink& sink) {
  ZEUS_TRY(const std::vector<std::string> names, TableNames(connection));
  for (const std::string& name : names) {
    ZEUS_TRY(const Table table, Describe(connection, name));
    ZEUS_RETURN_IF_ERROR(begin(table));
    ZEUS_RETURN_IF_ERROR(PassTable(connection, table, sink));
  }
  return Ok();
}

// Begins a transaction that reads one moment of the database and does not keep writers waiting.
Status BeginSnapshot(SqlConnection& connection) {
  if (connection.dialect() == SqlDialect::kSqlite) {
    ZEUS_RETURN_IF_ERROR(connection.Run("BEGIN"));
    return Ok();
  }
  ZEUS_RETURN_IF_ERROR(connection.Begin());
  ZEUS_RETURN_IF_ERROR(
      connection.Run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"));
  return Ok();
}

void Count(const Table& table, BackupSummary& summary) {
  summary.jobs += table.name == "jobs" ? 1 : 0;
  summary.trials += table.name == "trials" ? 1 : 0;
  summary.events += table.name == "events" ? 1 : 0;
}

// --- lines ---

// JSON has no infinities, and the database has no other values that are no JSON.
Json ToJson(const SqlValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  const auto* real = std::get_if<double>(&value);
  if (real == nullptr) return nullptr;
  if (std::isfinite(*real)) return *real;
  return {{"infinity", *real > 0 ? 1 : -1}};
}

std::optional<SqlValue> FromJson(const Json& json) {
  if (json.is_null()) return SqlValue();
  if (json.is_string()) return SqlValue(json.get<std::string>());
  if (json.is_number_integer()) return SqlValue(json.get<std::int64_t>());
  if (json.is_number()) return SqlValue(json.get<double>());
  const auto sign = json.is_object() ? json.find("infinity") : json.end();
  if (sign == json.end() || !sign->is_number_integer()) return std::nullopt;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return SqlValue(sign->get<int>() > 0 ? kInfinity : -kInfinity);
}

Result<std::string> Line(const Json& json) {
  ZEUS_TRY(std::string text, StorableJson(json));
  return text + "\n";
}

// --- reading a file ---

template <class T>
std::optional<T> FieldOf(const Json& json, std::string_view name) {
  if (!json.is_object()) return std::nullopt;
  auto field = GetField<T>(json, name);
  return field.ok() ? std::optional<T>(std::move(field).value()) : std::nullopt;
}

class BackupFile {
 public:
  static Result<std::unique_ptr<BackupFile>> Open(const std::filesystem::path& path) {
    std::error_code failure;
    if (std::filesystem::exists(path, failure) && !std::filesystem::is_regular_file(path, failure))
      return InvalidArgument(Printable(path.string()) + ": is not a file");
    std::unique_ptr<BackupFile> file(new BackupFile(path));
    if (!file->stream_) return FileError(path, errno);
    ZEUS_TRY(const Json head, file->Next());
    const auto format = FieldOf<std::string>(head, "format");
    file->schema_ = FieldOf<std::int64_t>(head, "schema").value_or(0);
    if (format != kFormat || file->schema_ < 1) return file->NoBackup();
    if (file->schema_ > SchemaVersion())
      return Error{ErrorCode::kConflict,
                   fmt::format("{}: was made by a newer zeus (schema {}, this program knows {}): "
                               "update this program",
                               Printable(path.string()), file->schema_, SchemaVersion())};
    return file;
  }

  std::int64_t schema() const { return schema_; }

  // Passes on all rows; may be called once.
  Status PassRows(const RowSink& sink) {
    Table table;
    std::int64_t rows = 0;
    for (;;) {
      ZEUS_TRY(const Json line, Next());
      if (line.is_array()) {
        ZEUS_TRY(SqlRow row, RowFrom(line, table));
        ZEUS_RETURN_IF_ERROR(sink(table, std::move(row)));
        ++rows;
      } else if (const auto name = FieldOf<std::string>(line, "table")) {
        const auto columns = FieldOf<std::vector<std::string>>(line, "columns");
        if (!columns) return NotWhole();
        table = {.name = *name, .columns = *columns};
      } else {
        return FieldOf<std::int64_t>(line, "rows") == rows ? Ok() : Status(NotWhole());
      }
    }
  }

 private:
  explicit BackupFile(std::filesystem::path path)
      : path_(std::move(path)), stream_(path_, std::ios::binary) {}

  Error NoBackup() const {
    return InvalidArgument(Printable(path_.string()) + ": is no backup of zeus job backup");
  }
  Error NotWhole() const {
    return InvalidArgument(fmt::format("{}: is not whole (line {}): use another copy",
                                       Printable(path_.string()), line_));
  }

  Result<Json> Next() {
    std::string text;
    ++line_;
    if (!std::getline(stream_, text)) return line_ == 1 ? NoBackup() : NotWhole();
    auto json = ParseJson(text);
    if (!json.ok() || !(json.value().is_object() || json.value().is_array()))
      return line_ == 1 ? NoBackup() : NotWhole();
    return json;
  }

  Result<SqlRow> RowFrom(const Json& line, const Table& table) const {
    if (line.size() != table.columns.size() || table.columns.empty()) return NotWhole();
    SqlRow row;
    for (const Json& json : line) {
      auto value = FromJson(json);
      if (!value) return NotWhole();
      row.push_back(*std::move(value));
    }
    return row;
  }

  const std::filesystem::path path_;
  std::ifstream stream_;
  std::int64_t schema_ = 0;
  std::int64_t line_ = 0;
};

// --- writing a database ---

// A row belongs to the row of `table` whose id its column `column` holds.
struct Owner {
  std::size_t column = 0;
  std::string table{};
};

Owner OwnerOf(const Table& table) {
  static const std::map<std::string, std::string, std::less<>> kParents = {
      {"job_id", "jobs"}, {"session_id", "pipeline_sessions"}, {"duel_id", "duels"}};
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    if (const auto parent = kParents.find(table.columns[i]); parent != kParents.end())
      return {.column = i, .table = parent->second};
  return {.column = 0, .table = table.name};
}

// Adds rows to a database, but for those that belong to something that it had before.
class Inserter {
 public:
  explicit Inserter(SqlConnection& connection) : connection_(connection) {}

  // Reads the schema and what is there, within the transaction that then adds rows.
  Status Prepare() {
    ZEUS_TRY(const std::vector<std::string> names, TableNames(connection_));
    for (const std::string& name : names) {
      ZEUS_TRY(Table table, Describe(connection_, name));
      tables_.emplace(name, std::move(table));
    }
    for (const auto& [name, table] : tables_) {
      if (OwnerOf(table).table != name) continue;
      ZEUS_TRY(const SqlAnswer answer,
               connection_.Run(fmt::format("SELECT {} FROM {}", table.columns.front(), name)));
      for (const SqlRow& row : answer.rows) present_[name].insert(row.front());
    }
    return Ok();
  }

  Status Add(const Table& table, SqlRow row) {
    const auto known = tables_.find(table.name);
    // Names become a part of the statement, so they must be those of our own schema.
    if (known == tables_.end() ||
        !std::ranges::all_of(table.columns, [&](const std::string& column) {
          return HasColumn(known->second, column);
        }))
      return InvalidArgument(
          fmt::format("the backup has a table {} that this schema lacks", Quote(table.name)));
    if (table.name.starts_with("budget_")) return Ok();
    const Owner owner = OwnerOf(table);
    const SqlValue& key = row.at(owner.column);
    const auto present = present_.find(owner.table);
    if (present != present_.end() && present->second.contains(key)) {
      if (table.name == "jobs") summary_.kept.push_back(std::get<std::string>(key));
      return Ok();
    }
    Count(table, summary_.restored);
    const std::string sql =
        InsertInto(table.name, fmt::format("{}", fmt::join(table.columns, ", ")),
                   static_cast<int>(table.columns.size()));
    return connection_.Post(sql, row);
  }

  RestoreSummary& summary() { return summary_; }

 private:
  SqlConnection& connection_;
  std::map<std::string, Table> tables_;
  std::map<std::string, std::set<SqlValue>> present_;  // The first keys of tables that own rows.
  RestoreSummary summary_;
};

// Passes on the rows of a file as the present schema has them.
Status PassUpToDate(BackupFile& file, const RowSink& sink) {
  if (file.schema() == SchemaVersion()) return file.PassRows(sink);
  ZEUS_TRY(const auto memory,
           SqliteConnection::Open(":memory:", SqliteConnection::Use::kReadAndWrite));
  ZEUS_RETURN_IF_ERROR(MigrateTo(*memory, file.schema()));
  ZEUS_RETURN_IF_ERROR(memory->Begin());
  Inserter inserter(*memory);
  ZEUS_RETURN_IF_ERROR(inserter.Prepare());
  ZEUS_RETURN_IF_ERROR(file.PassRows(
      [&inserter](const Table& table, SqlRow row) { return inserter.Add(table, std::move(row)); }));
  ZEUS_RETURN_IF_ERROR(memory->Commit());
  ZEUS_RETURN_IF_ERROR(Migrate(*memory));
  return PassDatabase(
      *memory, [](const Table&) { return Ok(); }, sink);
}

}  // namespace

Result<BackupSummary> BackUp(const std::string& url, const std::filesystem::path& file,
                             WallTime now) {
  ZEUS_TRY(const auto connection, OpenConnection(url, ConnectionUse::kRead));
  ZEUS_RETURN_IF_ERROR(BeginSnapshot(*connection));
  BackupSummary summary;
  ZEUS_TRY(summary.schema, SchemaVersionOf(*connection));
  std::int64_t rows = 0;
  const auto write = [&](const WritePart& write_part) -> Status {
    const auto put = [&](const Json& json) -> Status {
      ZEUS_TRY(const std::string line, Line(json));
      return write_part(line);
    };
    ZEUS_RETURN_IF_ERROR(
        put({{"format", kFormat}, {"schema", summary.schema}, {"made_at", ToExactText(now)}}));
    ZEUS_RETURN_IF_ERROR(PassDatabase(
        *connection,
        [&](const Table& table) {
          return put({{"table", table.name}, {"columns", table.columns}});
        },
        [&](const Table& table, const SqlRow& row) {
          Count(table, summary);
          ++rows;
          Json values = Json::array();
          for (const SqlValue& value : row) values.push_back(ToJson(value));
          return put(values);
        }));
    return put({{"rows", rows}});
  };
  ZEUS_RETURN_IF_ERROR(ReplaceFile(file, write, Readers::kOwnerOnly));
  connection->Rollback();  // Nothing was changed.
  return summary;
}

Result<RestoreSummary> Restore(const std::filesystem::path& file, const std::string& url) {
  ZEUS_TRY(const auto backup, BackupFile::Open(file));
  ZEUS_TRY(const auto connection, OpenConnection(url, ConnectionUse::kWrite));
  ZEUS_RETURN_IF_ERROR(Migrate(*connection));
  ZEUS_RETURN_IF_ERROR(connection->Begin());
  Inserter inserter(*connection);
  auto done = inserter.Prepare();
  if (done.ok())
    done = PassUpToDate(*backup, [&inserter](const Table& table, SqlRow row) {
      return inserter.Add(table, std::move(row));
    });
  if (!done.ok()) {
    connection->Rollback();
    return std::move(done).error();
  }
  ZEUS_RETURN_IF_ERROR(connection->Commit());
  inserter.summary().restored.schema = backup->schema();
  return std::move(inserter.summary());
}

}  // namespace zeus
