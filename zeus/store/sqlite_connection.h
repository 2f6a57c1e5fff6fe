#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>

#include "zeus/store/sql_connection.h"

struct sqlite3;
struct sqlite3_stmt;

namespace zeus {

// An SQLite database: WAL, every commit synced, BEGIN IMMEDIATE. Waits up to ten seconds for other
// processes that write to the same file.
class SqliteConnection final : public SqlConnection {
 public:
  enum class Use {
    kReadAndWrite,
    kReadOnly,      // A file that this process may write.
    kReadOnlyFile,  // A file or folder that this process may not write.
  };

  // `file` must exist (see PrepareSqliteFile); ":memory:" is a database of this connection alone.
  // Returns kInvalidArgument, and does not touch the file, when it is not a database or belongs to
  // another program.
  static Result<std::unique_ptr<SqlConnection>> Open(const std::filesystem::path& file, Use use);

  ~SqliteConnection() override;
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  SqlDialect dialect() const override { return SqlDialect::kSqlite; }
  const std::string& name() const override { return name_; }
  Result<SqlAnswer> Run(const std::string& sql, std::span<const SqlValue> values) override;
  Status Post(const std::string& sql, std::span<const SqlValue> values) override;
  SqlTrouble trouble() const override { return trouble_; }
  Status Begin() override;
  Status Commit() override;
  void Rollback() override;

 private:
  SqliteConnection(sqlite3* database, std::string name);

  static Result<std::unique_ptr<SqlConnection>> OpenReadOnlyFile(const std::filesystem::path& file);
  Status Configure(Use use);
  Status RefuseOtherPrograms(Use use);
  Status CheckStillThere();
  Result<sqlite3_stmt*> Prepared(const std::string& sql);
  Result<SqlAnswer> Step(sqlite3_stmt* statement);
  Error Failure(int code);

  sqlite3* const database_;
  const std::string name_;
  std::unordered_map<std::string, sqlite3_stmt*> statements_;
  SqlTrouble trouble_ = SqlTrouble::kNone;
  bool in_transaction_ = false;
};

// Returns whether the file exists and this process may only read it: it may not write the file, or
// may not create files in its folder, as SQLite does.
bool IsOnlyReadable(const std::filesystem::path& file);

// Creates the file, for its owner alone, and the folders above it if they do not exist. Returns
// kInvalidArgument when the path holds something that cannot be a database.
Status PrepareSqliteFile(const std::filesystem::path& file);

}  // namespace zeus
