#include "zeus/store/sql_job_transaction.h"

#include <fmt/format.h>

#include <utility>

#include "zeus/base/text.h"
#include "zeus/store/job_rows.h"

namespace zeus {
namespace {

const std::string kActive = " AND status IN ('dispatched', 'reporting')";

// "$3, $4, $5"
std::string Placeholders(int first, int last) {
  std::string text = fmt::format("${}", first);
  for (int i = first + 1; i <= last; ++i) text += fmt::format(", ${}", i);
  return text;
}

std::string InsertInto(const std::string& table, const std::string& columns, int count) {
  return "INSERT INTO " + table + " (" + columns + ") VALUES (" + Placeholders(1, count) + ")";
}

Error NoSuchJob(const std::string& id) {
  return Error{ErrorCode::kNotFound, "id: there is no job " + Quote(id)};
}

}  // namespace

std::optional<SqlJobTransaction::Failure> SqlJobTransaction::TakeFailure() {
  missed_.clear();
  return std::exchange(failure_, std::nullopt);
}

Result<SqlAnswer> SqlJobTransaction::Run(const std::string& sql, std::span<const SqlValue> values) {
  if (failure_) return failure_->error;  // The database would only say that the change is over.
  auto answer = connection_.Run(sql, values);
  if (!answer.ok()) failure_ = Failure{connection_.trouble(), answer.error()};
  return answer;
}

// Exactly one row is there to be changed, since the job is locked.
Status SqlJobTransaction::ChangeOne(const std::string& sql, const SqlRow& values,
                                    const std::string& what) {
  ZEUS_TRY(const SqlAnswer answer, Run(sql, values));
  if (answer.changed == 1) return Ok();
  return Error{ErrorCode::kNotFound, "there is no " + what};
}

std::string SqlJobTransaction::LockingClause() const {
  if (connection_.dialect() == SqlDialect::kSqlite) return "";  // BEGIN IMMEDIATE locked it all.
  return holds_locks_ ? " FOR UPDATE NOWAIT" : " FOR UPDATE";
}

Result<Job> SqlJobTransaction::LockJob(const std::string& id) {
  ZEUS_TRY(SqlAnswer answer,
           Run("SELECT " + kJobColumns + " FROM jobs WHERE id = $1" + LockingClause(), Values(id)));
  if (answer.rows.empty()) {
    missed_.insert(id);
    return NoSuchJob(id);
  }
  holds_locks_ = true;
  return JobFrom(std::move(answer.rows.front()));
}

Status SqlJobTransaction::InsertJob(const Job& job) {
  static const std::string kInsert =
      InsertInto("jobs", kJobColumns, 10) + " ON CONFLICT (id) DO NOTHING";
  static const std::string kInsertLabel = InsertInto("job_labels", "job_id, name, value", 3);
  ZEUS_TRY(const SqlRow row, RowOf(job));
  ZEUS_TRY(const SqlAnswer inserted, Run(kInsert, row));
  holds_locks_ = true;
  if (inserted.changed == 0) return JobIsThere(job.spec.id);
  for (const auto& [name, value] : job.spec.labels)
    ZEUS_RETURN_IF_ERROR(Run(kInsertLabel, Values(job.spec.id, name, value)));
  return Ok();
}

Error SqlJobTransaction::JobIsThere(const std::string& id) {
  Error error{ErrorCode::kConflict, "id: there is a job " + Quote(id)};
  // It was not there a moment ago: another server made it. The change may decide otherwise now.
  if (missed_.contains(id)) failure_ = Failure{SqlTrouble::kTransactionLost, error};
  return error;
}

Status SqlJobTransaction::UpdateJob(const Job& job) {
  ZEUS_TRY(std::string state, JsonText(job.policy_state));
  SqlRow values = Values(job.spec.id, job.recurrences, job.trials, job.events, std::move(state));
  values.push_back(job.least_cost ? SqlValue(job.least_cost->value()) : SqlValue());
  values.push_back(job.least_cost_batch_size ? SqlValue(std::int64_t{*job.least_cost_batch_size})
                                             : SqlValue());
  return ChangeOne(
      "UPDATE jobs SET recurrences = $2, trials = $3, events = $4, policy_state = $5, "
      "least_cost_joules = $6, least_cost_batch_size = $7 WHERE id = $1",
      values, "job " + Quote(job.spec.id));
}

Status SqlJobTransaction::DeleteJob(const std::string& id) {
  ZEUS_TRY(const SqlAnswer found,
           Run("SELECT id FROM jobs WHERE id = $1" + LockingClause(), Values(id)));
  if (found.rows.empty()) return NoSuchJob(id);
  holds_locks_ = true;
  ZEUS_RETURN_IF_ERROR(Run("DELETE FROM jobs WHERE id = $1", Values(id)));
  return Ok();
}

Result<std::optional<Trial>> SqlJobTransaction::OneTrial(const std::string& sql,
                                                         const SqlRow& values) {
  ZEUS_TRY(SqlAnswer answer, Run(sql, values));
  if (answer.rows.empty()) return std::optional<Trial>();
  ZEUS_TRY(Trial trial, TrialFrom(std::move(answer.rows.front())));
  return std::optional<Trial>(std::move(trial));
}

Result<std::optional<Trial>> SqlJobTransaction::FindTrial(const std::string& job_id,
                                                          std::int64_t number) {
  return OneTrial("SELECT " + kTrialColumns + " FROM trials WHERE job_id = $1 AND number = $2",
                  Values(job_id, number));
}

Result<std::optional<Trial>> SqlJobTransaction::FindTrialByRequest(const std::string& job_id,
                                                                   const std::string& request_id) {
  return OneTrial("SELECT " + kTrialColumns + " FROM trials WHERE job_id = $1 AND request_id = $2",
                  Values(job_id, request_id));
}

Result<bool> SqlJobTransaction::HasActiveTrial(const std::string& job_id, RunRole role) {
  ZEUS_TRY(const SqlAnswer answer,
           Run("SELECT 1 FROM trials WHERE job_id = $1 AND role = $2" + kActive + " LIMIT 1",
               Values(job_id, std::string(Name(role)))));
  return !answer.rows.empty();
}

Result<std::vector<Trial>> SqlJobTransaction::OverdueTrials(const std::string& job_id, WallTime now,
                                                            int limit) {
  ZEUS_TRY(SqlAnswer answer,
           Run("SELECT " + kTrialColumns + " FROM trials WHERE job_id = $1 AND lease_until < $2" +
                   kActive + " ORDER BY number LIMIT $3",
               Values(job_id, SqlTime(now), std::int64_t{limit})));
  return AllFrom(std::move(answer), TrialFrom);
}

Result<std::vector<Trial>> SqlJobTransaction::TrialsOfRecurrence(const std::string& job_id,
                                                                 std::int64_t recurrence) {
  ZEUS_TRY(SqlAnswer answer, Run("SELECT " + kTrialColumns +
                                     " FROM trials WHERE job_id = $1 AND recurrence = $2 "
                                     "ORDER BY attempt, number",
                                 Values(job_id, recurrence)));
  return AllFrom(std::move(answer), TrialFrom);
}

Status SqlJobTransaction::InsertTrial(const Trial& trial) {
  static const std::string kInsert = InsertInto("trials", kTrialColumns, 22);
  ZEUS_TRY(const SqlRow row, RowOf(trial));
  ZEUS_RETURN_IF_ERROR(Run(kInsert, row));
  return Ok();
}

Status SqlJobTransaction::UpdateTrial(const Trial& trial) {
  static const std::string kUpdate = "UPDATE trials SET (" + kTrialColumnsButKey + ") = (" +
                                     Placeholders(3, 22) + ") WHERE job_id = $1 AND number = $2";
  ZEUS_TRY(const SqlRow row, RowOf(trial));
  return ChangeOne(kUpdate, row,
                   fmt::format("trial {} of job {}", trial.number, Quote(trial.job_id)));
}

Status SqlJobTransaction::AppendEvent(const JobEvent& event) {
  static const std::string kInsert = InsertInto("events", kEventColumns, 6);
  ZEUS_TRY(const SqlRow row, RowOf(event));
  ZEUS_RETURN_IF_ERROR(Run(kInsert, row));
  return Ok();
}

}  // namespace zeus
