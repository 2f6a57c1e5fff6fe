#include <fmt/format.h>

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "zeus/base/json.h"
#include "zeus/store/sql_database.h"

namespace zeus {
namespace {

// Compares ids byte by byte, whatever the collation of the server is.
constexpr std::string_view kIdType = "ID_TEXT";
constexpr std::string_view kSqliteIdType = "TEXT COLLATE BINARY";
constexpr std::string_view kPostgresIdType = R"(TEXT COLLATE "C")";

// Times are microseconds since 1970, UTC. Nothing has a length limit. A released statement is never
// changed; a new migration alters its result.
constexpr std::array kFirst = {
    "CREATE TABLE jobs ("
    " id ID_TEXT PRIMARY KEY,"
    " spec TEXT NOT NULL,"
    " seed TEXT NOT NULL,"
    " created_at BIGINT NOT NULL,"
    " recurrences BIGINT NOT NULL,"
    " trials BIGINT NOT NULL,"
    " events BIGINT NOT NULL,"
    " policy_state TEXT NOT NULL,"
    " least_cost_joules DOUBLE PRECISION,"
    " least_cost_batch_size BIGINT)",

    "CREATE TABLE job_labels ("
    " job_id ID_TEXT NOT NULL,"
    " name ID_TEXT NOT NULL,"
    " value ID_TEXT NOT NULL,"
    " PRIMARY KEY (job_id, name))",
    "CREATE INDEX job_labels_by_name ON job_labels (name, job_id)",

    // Trials and events have no foreign key to their job: a writer has locked the job anyway.
    "CREATE TABLE trials ("
    " job_id ID_TEXT NOT NULL,"
    " number BIGINT NOT NULL,"
    " recurrence BIGINT NOT NULL,"
    " attempt BIGINT NOT NULL,"
    " batch_size BIGINT NOT NULL,"
    " role TEXT NOT NULL,"
    " gpu_model TEXT NOT NULL,"
    " max_power_watts DOUBLE PRECISION NOT NULL,"
    " status TEXT NOT NULL,"
    " request_id ID_TEXT,"
    " started_at BIGINT NOT NULL,"
    " lease_seconds DOUBLE PRECISION NOT NULL,"
    " lease_until BIGINT NOT NULL,"
    " ended_at BIGINT,"
    " epochs BIGINT NOT NULL,"
    " time_seconds DOUBLE PRECISION NOT NULL,"
    " energy_joules DOUBLE PRECISION NOT NULL,"
    " cost_joules DOUBLE PRECISION NOT NULL,"
    " metric DOUBLE PRECISION,"
    " epoch_cost_joules DOUBLE PRECISION,"
    " power_limit_watts DOUBLE PRECISION,"
    " reason TEXT NOT NULL,"
    " PRIMARY KEY (job_id, number))",
    "CREATE UNIQUE INDEX trials_by_request ON trials (job_id, request_id)"
    " WHERE request_id IS NOT NULL",
    "CREATE INDEX trials_by_recurrence ON trials (job_id, recurrence, attempt)",
    "CREATE INDEX trials_active ON trials (job_id, role)"
    " WHERE status IN ('dispatched', 'reporting')",
    "CREATE INDEX trials_overdue ON trials (job_id, lease_until)"
    " WHERE status IN ('dispatched', 'reporting')",
    "CREATE INDEX trials_by_lease ON trials (lease_until, job_id)"
    " WHERE status IN ('dispatched', 'reporting')",

    "CREATE TABLE events ("
    " job_id ID_TEXT NOT NULL,"
    " sequence BIGINT NOT NULL,"
    " at BIGINT NOT NULL,"
    " kind TEXT NOT NULL,"
    " trial BIGINT,"
    " detail TEXT NOT NULL,"
    " PRIMARY KEY (job_id, sequence))",
};

// Plans of pipelines, and pipelines whose ranks register by themselves.
constexpr std::array kPlans = {
    "CREATE TABLE plans ("
    " id ID_TEXT PRIMARY KEY,"
    " incarnation BIGINT NOT NULL,"
    " created_at BIGINT NOT NULL,"
    " revision BIGINT NOT NULL,"
    " version BIGINT NOT NULL,"
    " pace_seconds DOUBLE PRECISION,"
    " spec TEXT NOT NULL)",

    "CREATE TABLE pipeline_sessions ("
    " id ID_TEXT PRIMARY KEY,"
    " created_at BIGINT NOT NULL,"
    " used_at BIGINT NOT NULL,"
    " round BIGINT NOT NULL,"
    " plan_id ID_TEXT NOT NULL,"
    " data_parallel BIGINT NOT NULL,"
    " pipeline_parallel BIGINT NOT NULL,"
    " tensor_parallel BIGINT NOT NULL,"
    " metadata TEXT NOT NULL)",
    "CREATE INDEX pipeline_sessions_by_use ON pipeline_sessions (used_at)",

    "CREATE TABLE pipeline_ranks ("
    " session_id ID_TEXT NOT NULL,"
    " rank BIGINT NOT NULL,"
    " data_rank BIGINT NOT NULL,"
    " pipeline_rank BIGINT NOT NULL,"
    " tensor_rank BIGINT NOT NULL,"
    " clocks_mhz TEXT NOT NULL,"
    " PRIMARY KEY (session_id, rank))",

    "CREATE TABLE pipeline_measurements ("
    " session_id ID_TEXT NOT NULL,"
    " round BIGINT NOT NULL,"
    " rank BIGINT NOT NULL,"
    " points TEXT NOT NULL,"
    " PRIMARY KEY (session_id, round, rank))",
};

// A row that Ping() writes to see whether the database accepts changes.
constexpr std::array kProbe = {
    "CREATE TABLE zeus_probe ("
    " id BIGINT PRIMARY KEY,"
    " filler TEXT NOT NULL)",
};

// The clock of leases (zeus/job/lease_clock.h); at most one row.
constexpr std::array kLeaseClock = {
    "CREATE TABLE lease_clock ("
    " id BIGINT PRIMARY KEY,"
    " lease BIGINT NOT NULL,"
    " wall BIGINT NOT NULL,"
    " boot TEXT NOT NULL,"
    " since_boot_seconds DOUBLE PRECISION NOT NULL)",
};

// How a run was disturbed, for savings and beliefs; unknown for earlier runs.
constexpr std::array kDisturbances = {
    "ALTER TABLE trials ADD COLUMN undisturbed BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE trials ADD COLUMN shared BIGINT NOT NULL DEFAULT 0",
};

// Runs whose energy is not known well enough; earlier ones were marked as shared.
constexpr std::array kUnmeasured = {
    "ALTER TABLE trials ADD COLUMN unmeasured BIGINT NOT NULL DEFAULT 0",
};

// Why a run has its batch size; not recorded for earlier runs.
constexpr std::array kReasons = {
    "ALTER TABLE trials ADD COLUMN why TEXT NOT NULL DEFAULT ''",
};

// Duels of two language models. A vote's key is what makes it the only one of its ballot.
constexpr std::array kDuels = {
    "CREATE TABLE duels ("
    " id ID_TEXT PRIMARY KEY,"
    " created_at BIGINT NOT NULL,"
    " preference TEXT NOT NULL,"
    " prompt TEXT,"
    " stage TEXT NOT NULL,"
    " stage_at BIGINT NOT NULL,"
    " preferred TEXT,"
    " failure TEXT)",
    "CREATE INDEX duels_by_stage ON duels (stage, stage_at)",
    "CREATE INDEX duels_revealed ON duels (created_at, id) WHERE stage = 'revealed'",

    "CREATE TABLE duel_answers ("
    " duel_id ID_TEXT NOT NULL,"
    " side TEXT NOT NULL,"
    " model TEXT NOT NULL,"
    " request TEXT NOT NULL,"
    " prompt_tokens DOUBLE PRECISION,"
    " output_tokens DOUBLE PRECISION,"
    " duration_seconds DOUBLE PRECISION,"
    " energy_joules DOUBLE PRECISION,"
    " sigma_joules DOUBLE PRECISION,"
    " prefill_joules DOUBLE PRECISION,"
    " prefill_sigma_joules DOUBLE PRECISION,"
    " decode_joules DOUBLE PRECISION,"
    " decode_sigma_joules DOUBLE PRECISION,"
    " final BIGINT NOT NULL,"
    " absent_reason TEXT NOT NULL,"
    " power_watts TEXT NOT NULL,"
    " answer_text TEXT,"
    " PRIMARY KEY (duel_id, side))",

    "CREATE TABLE duel_votes ("
    " duel_id ID_TEXT NOT NULL,"
    " ballot TEXT NOT NULL,"
    " choice TEXT NOT NULL,"
    " at BIGINT NOT NULL,"
    " PRIMARY KEY (duel_id, ballot))",

    "CREATE TABLE duel_irregularities ("
    " duel_id ID_TEXT NOT NULL,"
    " number BIGINT NOT NULL,"
    " what TEXT NOT NULL,"
    " at BIGINT NOT NULL,"
    " PRIMARY KEY (duel_id, number))",
};

// A power budget: the latest start of its server, and the watts that nodes may hold. The former is
// one row, which every change locks.
constexpr std::array kBudget = {
    "CREATE TABLE budget_servers ("
    " id ID_TEXT PRIMARY KEY,"
    " incarnation BIGINT NOT NULL,"
    " settings TEXT NOT NULL)",
    "CREATE TABLE budget_nodes ("
    " name ID_TEXT PRIMARY KEY,"
    " state TEXT NOT NULL)",
};

// In order; the first one has number 1.
const std::array<std::span<const char* const>, 9> kMigrations = {
    kFirst, kPlans, kProbe, kLeaseClock, kDisturbances, kUnmeasured, kReasons, kDuels, kBudget};

constexpr const char* kVersionTable =
    "CREATE TABLE IF NOT EXISTS zeus_migrations (version BIGINT PRIMARY KEY)";

std::string InDialect(std::string_view statement, SqlDialect dialect) {
  const std::string_view type = dialect == SqlDialect::kSqlite ? kSqliteIdType : kPostgresIdType;
  std::string text(statement);
  for (auto at = text.find(kIdType); at != std::string::npos;
       at = text.find(kIdType, at + type.size()))
    text.replace(at, kIdType.size(), type);
  return text;
}

Result<bool> HasVersionTable(SqlConnection& connection) {
  ZEUS_TRY(const SqlAnswer answer,
           connection.Run(connection.dialect() == SqlDialect::kSqlite
                              ? "SELECT 1 FROM sqlite_master WHERE name = 'zeus_migrations'"
                              : "SELECT 1 WHERE to_regclass('zeus_migrations') IS NOT NULL"));
  return !answer.rows.empty();
}

// Returns the version of the schema, 0 for an empty database.
Result<std::int64_t> CurrentVersion(SqlConnection& connection) {
  ZEUS_TRY(const bool known, HasVersionTable(connection));
  if (!known) return 0;
  ZEUS_TRY(const SqlAnswer answer,
           connection.Run("SELECT COALESCE(MAX(version), 0) FROM zeus_migrations"));
  return std::get<std::int64_t>(answer.rows.at(0).at(0));
}

Status RefuseNewer(const SqlConnection& connection, std::int64_t version) {
  if (version <= SchemaVersion()) return Ok();
  return Error{ErrorCode::kConflict,
               fmt::format("{}: was written by a newer zeus (schema {}, this program knows {}): "
                           "update this program",
                           connection.name(), version, SchemaVersion())};
}

Status Apply(SqlConnection& connection, std::int64_t version) {
  for (const char* statement : kMigrations.at(static_cast<std::size_t>(version - 1)))
    ZEUS_RETURN_IF_ERROR(connection.Run(InDialect(statement, connection.dialect())));
  const SqlValue number = version;
  ZEUS_RETURN_IF_ERROR(
      connection.Run("INSERT INTO zeus_migrations (version) VALUES ($1)", std::span(&number, 1)));
  return Ok();
}

// Locks the schema within a transaction. SQLite has locked the whole database already; PostgreSQL
// needs a statement.
Status ApplyMissing(SqlConnection& connection, std::int64_t last) {
  if (connection.dialect() == SqlDialect::kPostgres)
    ZEUS_RETURN_IF_ERROR(connection.Run("SELECT pg_advisory_xact_lock(6504739282741)"));
  ZEUS_RETURN_IF_ERROR(connection.Run(kVersionTable));
  ZEUS_TRY(const std::int64_t version, CurrentVersion(connection));
  ZEUS_RETURN_IF_ERROR(RefuseNewer(connection, version));
  for (std::int64_t next = version + 1; next <= last; ++next)
    ZEUS_RETURN_IF_ERROR(Apply(connection, next));
  return Ok();
}

}  // namespace

std::int64_t SchemaVersion() { return static_cast<std::int64_t>(kMigrations.size()); }

Status Migrate(SqlConnection& connection) { return MigrateTo(connection, SchemaVersion()); }

Result<std::int64_t> SchemaVersionOf(SqlConnection& connection) {
  ZEUS_TRY(const std::int64_t version, CurrentVersion(connection));
  ZEUS_RETURN_IF_ERROR(RefuseNewer(connection, version));
  if (version > 0) return version;
  return InvalidArgument(connection.name() + ": has no jobs of zeus");
}

Status MigrateTo(SqlConnection& connection, std::int64_t last) {
  // A database that is up to date needs no lock.
  ZEUS_TRY(const std::int64_t version, CurrentVersion(connection));
  if (version == last) return Ok();
  ZEUS_RETURN_IF_ERROR(RefuseNewer(connection, version));
  ZEUS_RETURN_IF_ERROR(connection.Begin());
  if (auto applied = ApplyMissing(connection, last); !applied.ok()) {
    connection.Rollback();
    return std::move(applied).error().While("prepare the database");
  }
  return connection.Commit();
}

Status CheckSchema(SqlConnection& connection) {
  ZEUS_TRY(const std::int64_t version, CurrentVersion(connection));
  if (version == SchemaVersion()) return Ok();
  ZEUS_RETURN_IF_ERROR(RefuseNewer(connection, version));
  return Error{
      ErrorCode::kConflict,
      fmt::format("{}: was written by an older zeus and cannot be brought up to date, since "
                  "it may only be read: copy it to a folder of yours",
                  connection.name())};
}

}  // namespace zeus
