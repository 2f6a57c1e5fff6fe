#include "zeus/store/sql_plan_repository.h"

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/plan/plan_spec.h"
#include "zeus/store/sql_connection.h"
#include "zeus/store/sql_values.h"
#include "zeus/store/store_transaction.h"

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

}  // namespace

Status SqlPlanRepository::Insert(const PlanRecord& record, const PlanSpec& spec) {
  ZEUS_TRY(std::string text, JsonText(ToJson(spec)));
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

}  // namespace zeus
