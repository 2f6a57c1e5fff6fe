#include "zeus/store/sql_job_repository.h"

#include <fmt/format.h>

#include <utility>

#include "zeus/base/text.h"
#include "zeus/store/job_rows.h"
#include "zeus/store/sql_connection.h"
#include "zeus/store/sql_values.h"
#include "zeus/store/store_transaction.h"

namespace zeus {

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

}  // namespace zeus
