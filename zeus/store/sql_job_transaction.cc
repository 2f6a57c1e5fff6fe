#include "zeus/store/sql_job_transaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/store/job_rows.h"
#include "zeus/store/sql_values.h"

namespace zeus {
namespace {

constexpr std::int64_t kMostActiveTrials = 256;
const std::string kJobsTable = "jobs";

const std::string kActive = " AND status IN ('dispatched', 'reporting')";

Error NoSuchJob(const std::string& id) {
  return Error{ErrorCode::kNotFound, "id: there is no job " + Quote(id)};
}

const std::string kUpdateJob =
    "UPDATE jobs SET recurrences = $2, trials = $3, events = $4, policy_state = $5, "
    "least_cost_joules = $6, least_cost_batch_size = $7 WHERE id = $1";

}  // namespace

// --- active trials ---

ActiveTrials::ActiveTrials(std::vector<Trial> trials) {
  for (Trial& trial : trials) {
    const std::int64_t number = trial.number;
    trials_.emplace(number, std::move(trial));
  }
}

const Trial* ActiveTrials::Find(std::int64_t number) const {
  const auto found = trials_.find(number);
  return found == trials_.end() ? nullptr : &found->second;
}

bool ActiveTrials::Has(RunRole role) const {
  return std::ranges::any_of(trials_, [&](const auto& entry) { return entry.second.role == role; });
}

std::vector<Trial> ActiveTrials::Overdue(WallTime now, int limit) const {
  std::vector<Trial> overdue;
  for (const auto& [number, trial] : trials_) {
    if (std::ssize(overdue) >= limit) break;
    if (trial.lease_until < now) overdue.push_back(trial);
  }
  return overdue;
}

void ActiveTrials::Put(const Trial& trial) {
  const Trial* before = Find(trial.number);
  undo_.emplace_back(trial.number, before == nullptr ? std::nullopt : std::optional(*before));
  if (IsActive(trial.status))
    trials_.insert_or_assign(trial.number, trial);
  else
    trials_.erase(trial.number);
}

void ActiveTrials::Undo() {
  for (; !undo_.empty(); undo_.pop_back()) {
    auto& [number, before] = undo_.back();
    trials_.erase(number);
    if (before) trials_.emplace(number, *std::move(before));
  }
}

// --- the change as a whole ---

void SqlJobTransaction::Keep() {
  before_.clear();
  for (auto& [id, held] : held_) {
    held.locked_in_part = false;
    if (held.active)
      held.active->Keep();
    else
      held.ask_for_active = true;
  }
}

void SqlJobTransaction::Undo() {
  for (auto& [id, held] : before_) {
    held_.erase(id);
    if (held) held_.emplace(id, *std::move(held));
  }
  before_.clear();
  std::erase_if(held_, [](const auto& entry) { return entry.second.locked_in_part; });
  for (auto& [id, held] : held_)
    if (held.active) held.active->Undo();
}

Status SqlJobTransaction::WriteJobs() {
  for (const auto& [id, held] : held_) {
    if (!held.changed) continue;
    ZEUS_TRY(SqlRow values, UpdatedColumns(*held.job));
    ZEUS_RETURN_IF_ERROR(transaction_.Post(kUpdateJob, values));
    parsed_.Expect(id, std::get<std::string>(std::move(values[kStateColumn])),
                   held.job->policy_state);
  }
  held_.clear();
  return Ok();
}

// Saves the held state of a job before the present change alters it.
void SqlJobTransaction::Remember(const std::string& id) {
  const auto held = held_.find(id);
  before_.try_emplace(id, held == held_.end() ? std::nullopt : std::optional(held->second));
}

// --- jobs ---

Result<Job> SqlJobTransaction::LockJob(const std::string& id) {
  if (const auto held = held_.find(id); held != held_.end()) return *held->second.job;
  SqlAnswer answer;
  ZEUS_TRY(const bool there, transaction_.Lock(kJobsTable, id, kJobColumns, answer));
  if (!there) return NoSuchJob(id);
  ZEUS_TRY(Job job, parsed_.JobFrom(std::move(answer.rows.front())));
  held_[id] = HeldJob{.job = std::make_shared<const Job>(job),
                      .locked_in_part = transaction_.part_is_open()};
  return job;
}

Status SqlJobTransaction::InsertJob(const Job& job) {
  static const std::string kInsertLabel = InsertInto("job_labels", "job_id, name, value", 3);
  ZEUS_TRY(const SqlRow row, ToRow(job));
  ZEUS_TRY(const bool inserted, transaction_.InsertNew(kJobsTable, kJobColumns, row));
  if (!inserted) return Error{ErrorCode::kConflict, "id: there is a job " + Quote(job.spec.id)};
  for (const auto& [name, value] : job.spec.labels)
    transaction_.Write(kInsertLabel, Values(job.spec.id, name, value));
  return Ok();
}

Status SqlJobTransaction::UpdateJob(const Job& job) {
  Remember(job.spec.id);
  if (const auto held = held_.find(job.spec.id); held != held_.end()) {
    held->second.job = std::make_shared<const Job>(job);
    held->second.changed = true;
    return Ok();
  }
  ZEUS_TRY(SqlRow values, UpdatedColumns(job));
  transaction_.Write(kUpdateJob, std::move(values));
  return Ok();
}

Status SqlJobTransaction::DeleteJob(const std::string& id) {
  if (!held_.contains(id)) {
    SqlAnswer ignored;
    ZEUS_TRY(const bool there, transaction_.Lock(kJobsTable, id, "id", ignored));
    if (!there) return NoSuchJob(id);
  }
  Remember(id);
  held_.erase(id);
  for (const char* table : {"events", "trials", "job_labels"})
    ZEUS_RETURN_IF_ERROR(
        transaction_.Change(fmt::format("DELETE FROM {} WHERE job_id = $1", table), Values(id)));
  transaction_.Write("DELETE FROM jobs WHERE id = $1", Values(id));
  return Ok();
}

// --- trials and events ---

Result<std::optional<Trial>> SqlJobTransaction::OneTrial(const std::string& sql,
                                                         const SqlRow& values) {
  ZEUS_TRY(SqlAnswer answer, transaction_.Ask(sql, values));
  if (answer.rows.empty()) return std::optional<Trial>();
  ZEUS_TRY(Trial trial, TrialFrom(std::move(answer.rows.front())));
  return std::optional<Trial>(std::move(trial));
}

// Worth a query only when the group has changed the job before, and possible only while nothing
// that the query would return can still be undone.
Result<ActiveTrials*> SqlJobTransaction::FindActive(const std::string& job_id) {
  const auto found = held_.find(job_id);
  if (found == held_.end()) return nullptr;
  HeldJob& held = found->second;
  if (held.active || !held.ask_for_active || transaction_.has_written()) return held.active.get();
  held.ask_for_active = false;
  static const std::string kSelect =
      "SELECT " + kTrialColumns + " FROM trials WHERE job_id = $1" + kActive + " LIMIT $2";
  ZEUS_TRY(SqlAnswer answer, transaction_.Ask(kSelect, Values(job_id, kMostActiveTrials + 1)));
  if (std::ssize(answer.rows) > kMostActiveTrials) return nullptr;
  ZEUS_TRY(std::vector<Trial> trials, AllFrom(std::move(answer), TrialFrom));
  held.active = std::make_shared<ActiveTrials>(std::move(trials));
  return held.active.get();
}

// Queues the write, and lets later questions of the group see it.
void SqlJobTransaction::Put(std::string sql, SqlRow row, const Trial& trial) {
  transaction_.Write(std::move(sql), std::move(row));
  const auto held = held_.find(trial.job_id);
  if (held != held_.end() && held->second.active) held->second.active->Put(trial);
}

Result<std::optional<Trial>> SqlJobTransaction::FindTrial(const std::string& job_id,
                                                          std::int64_t number) {
  ZEUS_TRY(const ActiveTrials* const active, FindActive(job_id));
  const Trial* const known = active == nullptr ? nullptr : active->Find(number);
  if (known != nullptr) return std::optional(*known);
  return OneTrial("SELECT " + kTrialColumns + " FROM trials WHERE job_id = $1 AND number = $2",
                  Values(job_id, number));
}

Result<std::optional<Trial>> SqlJobTransaction::FindTrialByRequest(const std::string& job_id,
                                                                   const std::string& request_id) {
  return OneTrial("SELECT " + kTrialColumns + " FROM trials WHERE job_id = $1 AND request_id = $2",
                  Values(job_id, request_id));
}

Result<bool> SqlJobTransaction::HasActiveTrial(const std::string& job_id, RunRole role) {
  ZEUS_TRY(const ActiveTrials* const active, FindActive(job_id));
  if (active != nullptr) return active->Has(role);
  ZEUS_TRY(const SqlAnswer answer,
           transaction_.Ask(
               "SELECT 1 FROM trials WHERE job_id = $1 AND role = $2" + kActive + " LIMIT 1",
               Values(job_id, std::string(Name(role)))));
  return !answer.rows.empty();
}

Result<std::vector<Trial>> SqlJobTransaction::OverdueTrials(const std::string& job_id, WallTime now,
                                                            int limit) {
  ZEUS_TRY(const ActiveTrials* const active, FindActive(job_id));
  if (active != nullptr) return active->Overdue(now, limit);
  ZEUS_TRY(SqlAnswer answer,
           transaction_.Ask("SELECT " + kTrialColumns +
                                " FROM trials WHERE job_id = $1 AND lease_until < $2" + kActive +
                                " ORDER BY number LIMIT $3",
                            Values(job_id, SqlTime(now), std::int64_t{limit})));
  return AllFrom(std::move(answer), TrialFrom);
}

Result<std::vector<Trial>> SqlJobTransaction::TrialsOfRecurrence(const std::string& job_id,
                                                                 std::int64_t recurrence) {
  ZEUS_TRY(SqlAnswer answer,
           transaction_.Ask("SELECT " + kTrialColumns +
                                " FROM trials WHERE job_id = $1 AND recurrence = $2 "
                                "ORDER BY attempt, number",
                            Values(job_id, recurrence)));
  return AllFrom(std::move(answer), TrialFrom);
}

Status SqlJobTransaction::InsertTrial(const Trial& trial) {
  static const std::string kInsert = InsertInto("trials", kTrialColumns, 24);
  ZEUS_TRY(SqlRow row, ToRow(trial));
  Put(kInsert, std::move(row), trial);
  return Ok();
}

Status SqlJobTransaction::UpdateTrial(const Trial& trial) {
  static const std::string kUpdate = "UPDATE trials SET (" + kTrialColumnsButKey + ") = (" +
                                     Placeholders(3, 24) + ") WHERE job_id = $1 AND number = $2";
  ZEUS_TRY(SqlRow row, ToRow(trial));
  Put(kUpdate, std::move(row), trial);
  return Ok();
}

Status SqlJobTransaction::AppendEvent(const JobEvent& event) {
  static const std::string kInsert = InsertInto("events", kEventColumns, 6);
  ZEUS_TRY(SqlRow row, ToRow(event));
  transaction_.Write(kInsert, std::move(row));
  return Ok();
}

Status SqlJobTransaction::KeepLeaseTick(const LeaseTick& tick) {
  ZEUS_RETURN_IF_ERROR(transaction_.Change(
      "INSERT INTO lease_clock (id, lease, wall, boot, since_boot_seconds)"
      " VALUES (1, $1, $2, $3, $4) ON CONFLICT (id) DO UPDATE SET lease = excluded.lease,"
      " wall = excluded.wall, boot = excluded.boot,"
      " since_boot_seconds = excluded.since_boot_seconds"
      " WHERE lease_clock.lease < excluded.lease",
      Values(SqlTime(tick.lease), SqlTime(tick.wall), tick.boot.boot, tick.boot.since.count())));
  return Ok();
}

}  // namespace zeus
