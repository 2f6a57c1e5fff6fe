#include "zeus/store/sql_session_repository.h"

#include <fmt/format.h>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/store/sql_connection.h"
#include "zeus/store/sql_values.h"
#include "zeus/store/store_transaction.h"

namespace zeus {
namespace {

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

SqlRow RowOf(const PipelineSession& session) {
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

SqlRow RowOf(const std::string& session, const SessionRank& rank) {
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
  const SqlRow row = RowOf(session);
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
    // Itself, and whoever is in its place.
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
      rows.Write(InsertInto("pipeline_ranks", "session_id, " + kRankColumns, 6), RowOf(id, rank));
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
    const Status done = ChangeSession(std::get<std::string>(row.at(0)),
                                      [&](const PipelineSession& session, SqlTransaction& rows) {
                                        used = session.used_at >= before;  // Again, meanwhile.
                                        return used ? Ok() : DeleteSession(rows, session.id);
                                      });
    // Another server deletes them, too.
    if (!done.ok() && done.error().code != ErrorCode::kNotFound) return done.error();
    if (done.ok() && !used) ++deleted;
  }
  return deleted;
}

}  // namespace zeus
