#include "zeus/store/sql_repositories.h"

#include <fmt/format.h>

#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/plan/plan_repository.h"
#include "zeus/store/sql_connection.h"
#include "zeus/store/sql_job_transaction.h"

namespace zeus {
namespace {

const std::string kPlansTable = "plans";
const std::string kRecordColumns = "id, incarnation, created_at, revision, version, pace_seconds";

Error NoPlan(const std::string& id) {
  return Error{ErrorCode::kNotFound, "id: there is no plan " + Quote(id)};
}

std::int64_t SqlNumber(std::uint64_t number) { return static_cast<std::int64_t>(number); }

SqlValue SqlPace(const std::optional<Seconds>& pace) {
  return pace ? SqlValue(pace->count()) : SqlValue();
}

Result<PlanRecord> RecordFrom(SqlRow row) {
  RowReader reader(kPlansTable, std::move(row));
  PlanRecord record;
  record.id = reader.Text();
  record.incarnation = static_cast<std::uint64_t>(reader.Integer());
  record.created_at = reader.Time();
  record.revision = reader.Integer();
  record.version = reader.Integer();
  if (const auto pace = reader.OptionalReal()) record.pace = Seconds(*pace);
  ZEUS_RETURN_IF_ERROR(reader.status());
  return record;
}

const std::string kSessionsTable = "pipeline_sessions";
const std::string kColumns =
    "id, created_at, used_at, round, plan_id, data_parallel, pipeline_parallel, tensor_parallel, "
    "metadata";
const std::string kRankColumns = "rank, data_rank, pipeline_rank, tensor_rank, clocks_mhz";
const std::string kMeasurementColumns = "round, rank, points";

Error NoSession(const std::string& id) {
  return Error{ErrorCode::kNotFound, "job_id: there is no pipeline " + Quote(id)};
}

SqlValue NumberValue(std::int64_t value) { return value; }

SqlRow ToRow(const PipelineSession& session) {
  return Values(session.id, SqlTime(session.created_at), SqlTime(session.used_at),
                NumberValue(session.round), session.plan_id, NumberValue(session.data_parallel),
                NumberValue(session.pipeline_parallel), NumberValue(session.tensor_parallel),
                session.metadata);
}

Result<PipelineSession> SessionFrom(SqlRow row) {
  RowReader reader(kSessionsTable, std::move(row));
  PipelineSession session;
  session.id = reader.Text();
  session.created_at = reader.Time();
  session.used_at = reader.Time();
  session.round = reader.SmallInteger();
  session.plan_id = reader.Text();
  session.data_parallel = reader.SmallInteger();
  session.pipeline_parallel = reader.SmallInteger();
  session.tensor_parallel = reader.SmallInteger();
  session.metadata = reader.Text();
  ZEUS_RETURN_IF_ERROR(reader.status());
  return session;
}

SqlRow ToRow(const std::string& session, const SessionRank& rank) {
  return Values(session, NumberValue(rank.rank), NumberValue(rank.data_rank),
                NumberValue(rank.pipeline_rank), NumberValue(rank.tensor_rank),
                Json(rank.clocks_mhz).dump());
}

Result<std::vector<int>> ClocksFrom(const Json& json) {
  ZEUS_TRY(std::vector<int> clocks, GetField<std::vector<int>>({{"clocks", json}}, "clocks"));
  return clocks;
}

Result<SessionRank> RankFrom(SqlRow row) {
  RowReader reader("pipeline_ranks", std::move(row));
  SessionRank rank;
  rank.rank = reader.SmallInteger();
  rank.data_rank = reader.SmallInteger();
  rank.pipeline_rank = reader.SmallInteger();
  rank.tensor_rank = reader.SmallInteger();
  rank.clocks_mhz = reader.Checked(ClocksFrom(reader.JsonValue()));
  ZEUS_RETURN_IF_ERROR(reader.status());
  return rank;
}

Result<SessionMeasurement> MeasurementFrom(SqlRow row) {
  RowReader reader("pipeline_measurements", std::move(row));
  SessionMeasurement measurement;
  measurement.round = reader.SmallInteger();
  measurement.rank = reader.SmallInteger();
  measurement.points = reader.Text();
  ZEUS_RETURN_IF_ERROR(reader.status());
  return measurement;
}

Status DeleteSession(SqlTransaction& rows, const std::string& id) {
  for (const char* table : {"pipeline_measurements", "pipeline_ranks"})
    ZEUS_RETURN_IF_ERROR(
        rows.Change(fmt::format("DELETE FROM {} WHERE session_id = $1", table), Values(id)));
  rows.Write("DELETE FROM pipeline_sessions WHERE id = $1", Values(id));
  return Ok();
}

}  // namespace

// --- jobs ---

Status SqlJobRepository::Write(const Change& change) {
  return database_->Write(
      [&](StoreTransaction& transaction) { return change(transaction.jobs()); });
}

Result<Job> SqlJobRepository::FindJob(const std::string& id) {
  static const std::string kSelect = "SELECT " + kJobColumns + " FROM jobs WHERE id = $1";
  ZEUS_TRY(SqlAnswer answer, database_->Read(kSelect, Values(id)));
  if (answer.rows.empty()) return Error{ErrorCode::kNotFound, "id: there is no job " + Quote(id)};
  return database_->parsed_jobs().JobFrom(std::move(answer.rows.front()));
}

Result<std::vector<Job>> SqlJobRepository::ListJobs(const JobQuery& query) {
  std::string sql = "SELECT " + kJobColumns + " FROM jobs WHERE id > $1";
  SqlRow values = Values(query.after, std::int64_t{query.limit});
  if (query.label) {
    sql += " AND id IN (SELECT job_id FROM job_labels WHERE name = $3";
    values.push_back(*query.label);
    if (query.label_value) {
      sql += " AND value = $4";
      values.push_back(*query.label_value);
    }
    sql += ")";
  }
  ZEUS_TRY(SqlAnswer answer, database_->Read(sql + " ORDER BY id LIMIT $2", values));
  std::vector<Job> jobs;
  for (SqlRow& row : answer.rows) {
    ZEUS_TRY(Job job, database_->parsed_jobs().JobFrom(std::move(row)));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

Result<Trial> SqlJobRepository::FindTrial(const std::string& job_id, std::int64_t number) {
  static const std::string kSelect =
      "SELECT " + kTrialColumns + " FROM trials WHERE job_id = $1 AND number = $2";
  ZEUS_TRY(SqlAnswer answer, database_->Read(kSelect, Values(job_id, number)));
  if (answer.rows.empty())
    return Error{ErrorCode::kNotFound,
                 fmt::format("trial: there is no trial {} of job {}", number, Quote(job_id))};
  return TrialFrom(std::move(answer.rows.front()));
}

Result<std::vector<Trial>> SqlJobRepository::ListTrials(const std::string& job_id,
                                                        const TrialQuery& query) {
  std::string sql = "SELECT " + kTrialColumns + " FROM trials WHERE job_id = $1 AND number > $2";
  SqlRow values = Values(job_id, query.after, std::int64_t{query.limit});
  if (query.status) {
    sql += " AND status = $4";
    values.emplace_back(std::string(Name(*query.status)));
  }
  ZEUS_TRY(SqlAnswer answer, database_->Read(sql + " ORDER BY number LIMIT $3", values));
  return AllFrom(std::move(answer), TrialFrom);
}

Result<std::vector<JobEvent>> SqlJobRepository::ListEvents(const std::string& job_id,
                                                           std::int64_t after, int limit) {
  static const std::string kSelect =
      "SELECT " + kEventColumns +
      " FROM events WHERE job_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3";
  ZEUS_TRY(SqlAnswer answer, database_->Read(kSelect, Values(job_id, after, std::int64_t{limit})));
  return AllFrom(std::move(answer), EventFrom);
}

Result<std::vector<std::string>> SqlJobRepository::JobsWithOverdueTrials(WallTime now, int limit) {
  ZEUS_TRY(const SqlAnswer answer,
           database_->Read("SELECT DISTINCT job_id FROM trials WHERE lease_until < $1"
                           " AND status IN ('dispatched', 'reporting') ORDER BY job_id LIMIT $2",
                           Values(SqlTime(now), std::int64_t{limit})));
  std::vector<std::string> ids;
  for (const SqlRow& row : answer.rows) ids.push_back(std::get<std::string>(row.at(0)));
  return ids;
}

Result<std::optional<LeaseTick>> SqlJobRepository::FindLeaseTick() {
  ZEUS_TRY(SqlAnswer answer,
           database_->Read("SELECT lease, wall, boot, since_boot_seconds FROM lease_clock", {}));
  if (answer.rows.empty()) return std::optional<LeaseTick>();
  RowReader reader("lease_clock", std::move(answer.rows.front()));
  LeaseTick tick;
  tick.lease = reader.Time();
  tick.wall = reader.Time();
  tick.boot.boot = reader.Text();
  tick.boot.since = Seconds(reader.Real());
  ZEUS_RETURN_IF_ERROR(reader.status());
  return std::optional(std::move(tick));
}

Result<JobCounts> SqlJobRepository::Count(const std::string& name_space) {
  const SqlCondition own = InNameSpace(name_space);
  ZEUS_TRY(
      const SqlAnswer answer,
      database_->Read(
          "SELECT COUNT(*), CAST(COALESCE(SUM(trials), 0) AS BIGINT) FROM jobs WHERE " + own.sql,
          own.values));
  const SqlRow& row = answer.rows.at(0);
  return JobCounts{.jobs = std::get<std::int64_t>(row.at(0)),
                   .trials = std::get<std::int64_t>(row.at(1))};
}

Status SqlJobRepository::Ping() { return database_->Ping(); }

// --- plans ---

Status SqlPlanRepository::Insert(const PlanRecord& record, const PlanSpec& spec) {
  ZEUS_TRY(std::string text, StorableJson(ToJson(spec)));
  const SqlRow row = Values(record.id, SqlNumber(record.incarnation), SqlTime(record.created_at),
                            record.revision, record.version, SqlPace(record.pace), std::move(text));
  return database_->Write([&](StoreTransaction& transaction) -> Status {
    ZEUS_TRY(const bool inserted,
             transaction.rows().InsertNew(kPlansTable, kRecordColumns + ", spec", row));
    if (inserted) return Ok();
    return Error{ErrorCode::kConflict, "id: there is a plan " + Quote(record.id)};
  });
}

Result<bool> SqlPlanRepository::Update(const PlanRecord& record) {
  bool updated = false;
  ZEUS_RETURN_IF_ERROR(database_->Write([&](StoreTransaction& transaction) -> Status {
    updated = false;
    SqlAnswer answer;
    ZEUS_TRY(const bool there,
             transaction.rows().Lock(kPlansTable, record.id, kRecordColumns, answer));
    if (!there) return NoPlan(record.id);
    ZEUS_TRY(const PlanRecord stored, RecordFrom(std::move(answer.rows.front())));
    if (stored.incarnation != record.incarnation) return NoPlan(record.id);
    if (stored.revision != record.revision) return Ok();
    transaction.rows().Write(
        "UPDATE plans SET revision = $2, version = $3, pace_seconds = $4 WHERE id = $1",
        Values(record.id, record.revision + 1, record.version, SqlPace(record.pace)));
    updated = true;
    return Ok();
  }));
  return updated;
}

Status SqlPlanRepository::Delete(const std::string& id) {
  return database_->Write([&](StoreTransaction& transaction) -> Status {
    SqlAnswer answer;
    ZEUS_TRY(const bool there, transaction.rows().Lock(kPlansTable, id, "id", answer));
    if (!there) return NoPlan(id);
    transaction.rows().Write("DELETE FROM plans WHERE id = $1", Values(id));
    return Ok();
  });
}

Result<PlanRecord> SqlPlanRepository::Find(const std::string& id) {
  static const std::string kSelect = "SELECT " + kRecordColumns + " FROM plans WHERE id = $1";
  ZEUS_TRY(SqlAnswer answer, database_->Read(kSelect, Values(id)));
  if (answer.rows.empty()) return NoPlan(id);
  return RecordFrom(std::move(answer.rows.front()));
}

Result<PlanSpec> SqlPlanRepository::FindSpec(const PlanRecord& record) {
  ZEUS_TRY(SqlAnswer answer,
           database_->Read("SELECT spec FROM plans WHERE id = $1 AND incarnation = $2",
                           Values(record.id, SqlNumber(record.incarnation))));
  if (answer.rows.empty()) return NoPlan(record.id);
  RowReader reader(kPlansTable, std::move(answer.rows.front()));
  PlanSpec spec = reader.Checked(PlanSpecFromJson(reader.JsonValue()));
  ZEUS_RETURN_IF_ERROR(reader.status());
  return spec;
}

Result<std::int64_t> SqlPlanRepository::Count(const std::string& name_space) {
  const SqlCondition own = InNameSpace(name_space);
  ZEUS_TRY(const SqlAnswer answer,
           database_->Read("SELECT COUNT(*) FROM plans WHERE " + own.sql, own.values));
  return std::get<std::int64_t>(answer.rows.at(0).at(0));
}

Result<std::vector<std::string>> SqlPlanRepository::List(const std::string& after, int limit) {
  ZEUS_TRY(const SqlAnswer answer,
           database_->Read("SELECT id FROM plans WHERE id > $1 ORDER BY id LIMIT $2",
                           Values(after, std::int64_t{limit})));
  std::vector<std::string> ids;
  for (const SqlRow& row : answer.rows) ids.push_back(std::get<std::string>(row.at(0)));
  return ids;
}

// --- sessions of pipelines ---

Status SqlSessionRepository::ChangeSession(const std::string& id, const Change& change) {
  return database_->Write([&](StoreTransaction& transaction) -> Status {
    SqlAnswer answer;
    ZEUS_TRY(const bool there, transaction.rows().Lock(kSessionsTable, id, kColumns, answer));
    if (!there) return NoSession(id);
    ZEUS_TRY(const PipelineSession session, SessionFrom(std::move(answer.rows.front())));
    return change(session, transaction.rows());
  });
}

Status SqlSessionRepository::Insert(const PipelineSession& session) {
  const SqlRow row = ToRow(session);
  ZEUS_RETURN_IF_ERROR(CheckValues(row, "job_metadata"));
  return database_->Write([&](StoreTransaction& transaction) -> Status {
    ZEUS_TRY(const bool inserted, transaction.rows().InsertNew(kSessionsTable, kColumns, row));
    if (inserted) return Ok();
    return Error{ErrorCode::kConflict, "job_id: there is a pipeline " + Quote(session.id)};
  });
}

Result<PipelineSession> SqlSessionRepository::Find(const std::string& id) {
  static const std::string kSelect = "SELECT " + kColumns + " FROM pipeline_sessions WHERE id = $1";
  ZEUS_TRY(SqlAnswer answer, database_->Read(kSelect, Values(id)));
  if (answer.rows.empty()) return NoSession(id);
  return SessionFrom(std::move(answer.rows.front()));
}

Status SqlSessionRepository::MarkUsed(const std::string& id, WallTime at) {
  return ChangeSession(id, [&](const PipelineSession&, SqlTransaction& rows) {
    rows.Write("UPDATE pipeline_sessions SET used_at = $2 WHERE id = $1", Values(id, SqlTime(at)));
    return Ok();
  });
}

Status SqlSessionRepository::AddRank(const std::string& id, const SessionRank& rank) {
  return ChangeSession(id, [&](const PipelineSession&, SqlTransaction& rows) -> Status {
    // The rank itself, and another rank in the same position.
    ZEUS_TRY(SqlAnswer answer,
             rows.Ask("SELECT " + kRankColumns +
                          " FROM pipeline_ranks WHERE session_id = $1 AND "
                          "(rank = $2 OR (data_rank = $3 AND pipeline_rank = $4 "
                          "AND tensor_rank = $5)) ORDER BY rank",
                      Values(id, NumberValue(rank.rank), NumberValue(rank.data_rank),
                             NumberValue(rank.pipeline_rank), NumberValue(rank.tensor_rank))));
    ZEUS_TRY(const std::vector<SessionRank> known, AllFrom(std::move(answer), RankFrom));
    for (const SessionRank& other : known) ZEUS_RETURN_IF_ERROR(CheckBeside(rank, other));
    if (known.empty())
      rows.Write(InsertInto("pipeline_ranks", "session_id, " + kRankColumns, 6), ToRow(id, rank));
    return Ok();
  });
}

Result<std::vector<SessionRank>> SqlSessionRepository::Ranks(const std::string& id) {
  static const std::string kSelect =
      "SELECT " + kRankColumns + " FROM pipeline_ranks WHERE session_id = $1 ORDER BY rank";
  ZEUS_TRY(const PipelineSession session, Find(id));
  ZEUS_TRY(SqlAnswer answer, database_->Read(kSelect, Values(id)));
  return AllFrom(std::move(answer), RankFrom);
}

Status SqlSessionRepository::PutMeasurement(const std::string& id,
                                            const SessionMeasurement& measurement) {
  static const std::string kPut =
      InsertInto("pipeline_measurements", "session_id, " + kMeasurementColumns, 4) +
      " ON CONFLICT (session_id, round, rank) DO UPDATE SET points = excluded.points";
  const SqlRow row =
      Values(id, NumberValue(measurement.round), NumberValue(measurement.rank), measurement.points);
  ZEUS_RETURN_IF_ERROR(CheckValues(row, "a measurement"));
  return ChangeSession(id, [&](const PipelineSession&, SqlTransaction& rows) {
    rows.Write(kPut, row);
    return Ok();
  });
}

Result<std::vector<SessionMeasurement>> SqlSessionRepository::Measurements(const std::string& id) {
  static const std::string kSelect = "SELECT " + kMeasurementColumns +
                                     " FROM pipeline_measurements WHERE session_id = $1 "
                                     "ORDER BY round, rank";
  ZEUS_TRY(const PipelineSession session, Find(id));
  ZEUS_TRY(SqlAnswer answer, database_->Read(kSelect, Values(id)));
  return AllFrom(std::move(answer), MeasurementFrom);
}

Status SqlSessionRepository::EndRound(const PipelineSession& ended) {
  return ChangeSession(ended.id, [&](const PipelineSession& session, SqlTransaction& rows) {
    if (session.round == ended.round)
      rows.Write("UPDATE pipeline_sessions SET round = $2, plan_id = $3 WHERE id = $1",
                 Values(ended.id, NumberValue(ended.round + 1), ended.plan_id));
    return Ok();
  });
}

Status SqlSessionRepository::StartOver(const PipelineSession& failed) {
  return ChangeSession(
      failed.id, [&](const PipelineSession& session, SqlTransaction& rows) -> Status {
        if (session.round != failed.round) return Ok();
        ZEUS_RETURN_IF_ERROR(rows.Change("DELETE FROM pipeline_measurements WHERE session_id = $1",
                                         Values(failed.id)));
        rows.Write("UPDATE pipeline_sessions SET round = 0 WHERE id = $1", Values(failed.id));
        return Ok();
      });
}

Result<int> SqlSessionRepository::DeleteUnused(WallTime before, int limit) {
  ZEUS_TRY(const SqlAnswer answer,
           database_->Read("SELECT id FROM pipeline_sessions WHERE used_at < $1 LIMIT $2",
                           Values(SqlTime(before), std::int64_t{limit})));
  int deleted = 0;
  for (const SqlRow& row : answer.rows) {
    bool used = false;
    const Status done =
        ChangeSession(std::get<std::string>(row.at(0)),
                      [&](const PipelineSession& session, SqlTransaction& rows) {
                        used = session.used_at >= before;  // It was used again meanwhile.
                        return used ? Ok() : DeleteSession(rows, session.id);
                      });
    // Another server may have deleted it.
    if (!done.ok() && done.error().code != ErrorCode::kNotFound) return done.error();
    if (done.ok() && !used) ++deleted;
  }
  return deleted;
}

}  // namespace zeus
