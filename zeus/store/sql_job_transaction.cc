#include "zeus/store/sql_job_transaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/store/sql_connection.h"

namespace zeus {

std::optional<SqlTransaction::Failure> SqlTransaction::FetchFailure() {
  missed_.clear();
  return std::exchange(failure_, std::nullopt);
}

// Notes the failure of a statement.
template <class T>
Result<T> SqlTransaction::Noted(Result<T> result) {
  if (!result.ok() && !failure_) {
    const bool again = connection_.trouble() == SqlTrouble::kTransactionLost;
    failure_ = Failure{again ? Failure::Kind::kRunAgain : Failure::Kind::kOther, result.error()};
  }
  return result;
}

Status SqlTransaction::SendWrites() {
  for (const Statement& write : writes_)
    ZEUS_RETURN_IF_ERROR(Noted(connection_.Post(write.sql, write.values)));
  writes_.clear();
  return Ok();
}

// Begins a part, so that statements sent before the change has succeeded can be undone.
Status SqlTransaction::OpenPart() {
  if (part_is_open_) return Ok();
  ZEUS_RETURN_IF_ERROR(Noted(connection_.BeginPart()));
  part_is_open_ = true;
  return Ok();
}

Result<SqlAnswer> SqlTransaction::Ask(const std::string& sql, const SqlRow& values) {
  if (failure_) return failure_->error;
  ZEUS_RETURN_IF_ERROR(CheckValues(values, "a question"));
  if (!writes_.empty()) {
    ZEUS_RETURN_IF_ERROR(OpenPart());
    ZEUS_RETURN_IF_ERROR(SendWrites());
  }
  return Noted(connection_.Run(sql, values));
}

Result<SqlAnswer> SqlTransaction::Change(const std::string& sql, const SqlRow& values) {
  ZEUS_RETURN_IF_ERROR(OpenPart());
  return Ask(sql, values);
}

void SqlTransaction::Write(std::string sql, SqlRow values) {
  writes_.push_back({std::move(sql), std::move(values)});
}

Result<bool> SqlTransaction::Lock(const std::string& table, const std::string& id,
                                  const std::string& columns, SqlAnswer& answer) {
  const std::string from = fmt::format(" FROM {} WHERE id = $1", table);
  const bool sqlite =
      connection_.dialect() == SqlDialect::kSqlite;  // BEGIN IMMEDIATE has locked everything.
  const std::string lock = sqlite ? "" : (holds_locks_ ? " FOR UPDATE SKIP LOCKED" : " FOR UPDATE");
  ZEUS_TRY(answer, Ask("SELECT " + columns + from + lock, Values(id)));
  if (!answer.rows.empty()) {
    holds_locks_ = true;
    return true;
  }
  if (!sqlite && holds_locks_) {
    ZEUS_TRY(const SqlAnswer there, Ask("SELECT 1" + from, Values(id)));
    if (!there.rows.empty()) {
      failure_ = Failure{Failure::Kind::kBusy,
                         {ErrorCode::kUnavailable,
                          fmt::format("another server holds {} of {}", Quote(id), table)}};
      return failure_->error;
    }
  }
  missed_.emplace(table, id);
  return false;
}

Result<bool> SqlTransaction::InsertNew(const std::string& table, const std::string& columns,
                                       const SqlRow& row) {
  const std::string insert = InsertInto(table, columns, static_cast<int>(row.size()));
  ZEUS_TRY(const SqlAnswer inserted, Change(insert + " ON CONFLICT (id) DO NOTHING", row));
  holds_locks_ = true;
  if (inserted.changed > 0) return true;
  // Another server inserted the row after this change had not found it, so the change runs again
  // and may decide otherwise.
  const auto& id = std::get<std::string>(row.front());
  if (missed_.contains({table, id}))
    failure_ = Failure{Failure::Kind::kRunAgain,
                       {ErrorCode::kConflict, fmt::format("id: {} is there", Quote(id))}};
  return false;
}

Status SqlTransaction::Keep() {
  ZEUS_RETURN_IF_ERROR(SendWrites());
  if (std::exchange(part_is_open_, false)) return Noted(connection_.KeepPart());
  return Ok();
}

Status SqlTransaction::Undo() {
  writes_.clear();
  if (std::exchange(part_is_open_, false)) return Noted(connection_.UndoPart());
  return Ok();
}

Status SqlTransaction::Post(const std::string& sql, const SqlRow& values) {
  return Noted(connection_.Post(sql, values));
}

namespace {

SqlValue Integer(std::int64_t value) { return value; }
SqlValue Real(double value) { return value; }
SqlValue Text(std::string_view value) { return std::string(value); }
template <class Unit>
SqlValue OptionalUnit(const std::optional<Quantity<Unit>>& value) {
  return value ? SqlValue(value->value()) : SqlValue();
}
SqlValue OptionalTime(const std::optional<WallTime>& value) {
  return value ? SqlValue(SqlTime(*value)) : SqlValue();
}

template <class Unit>
std::optional<Quantity<Unit>> WithUnit(std::optional<double> value) {
  if (!value) return std::nullopt;
  return Quantity<Unit>(*value);
}

// Bytes of text; a parsed text takes about ten times its size in memory.
constexpr std::size_t kMostBytes = 8'000'000;

}  // namespace

const std::string kJobColumns =
    "id, spec, seed, created_at, recurrences, trials, events, policy_state, least_cost_joules, "
    "least_cost_batch_size";
const std::string kTrialColumnsButKey =
    "recurrence, attempt, batch_size, role, gpu_model, max_power_watts, status, "
    "request_id, started_at, lease_seconds, lease_until, ended_at, epochs, time_seconds, "
    "energy_joules, cost_joules, metric, epoch_cost_joules, power_limit_watts, reason, "
    "undisturbed, shared, unmeasured, why";
const std::string kTrialColumns = "job_id, number, " + kTrialColumnsButKey;
const std::string kEventColumns = "job_id, sequence, at, kind, trial, detail";

Result<SqlRow> ToRow(const Job& job) {
  ZEUS_TRY(std::string spec, StorableJson(ToJson(job.spec)));
  ZEUS_TRY(std::string state, StorableJson(job.policy_state));
  return Values(Text(job.spec.id), std::move(spec), std::to_string(job.seed),
                Integer(SqlTime(job.created_at)), Integer(job.recurrences), Integer(job.trials),
                Integer(job.events), std::move(state), OptionalUnit(job.least_cost),
                job.least_cost_batch_size ? Integer(*job.least_cost_batch_size) : SqlValue());
}

Result<SqlRow> UpdatedColumns(const Job& job) {
  ZEUS_TRY(std::string state, StorableJson(job.policy_state));
  return Values(
      job.spec.id, job.recurrences, job.trials, job.events, std::move(state),
      job.least_cost ? SqlValue(job.least_cost->value()) : SqlValue(),
      job.least_cost_batch_size ? SqlValue(std::int64_t{*job.least_cost_batch_size}) : SqlValue());
}

Result<SqlRow> ToRow(const Trial& trial) {
  SqlRow row = Values(
      Text(trial.job_id), Integer(trial.number), Integer(trial.recurrence), Integer(trial.attempt),
      Integer(trial.batch_size), Text(Name(trial.role)), Text(trial.gpu_model),
      Real(trial.max_power.value()), Text(Name(trial.status)),
      trial.request_id.empty() ? SqlValue() : Text(trial.request_id),
      Integer(SqlTime(trial.started_at)), Real(trial.lease.count()),
      Integer(SqlTime(trial.lease_until)), OptionalTime(trial.ended_at), Integer(trial.epochs),
      Real(trial.time.count()), Real(trial.energy.value()), Real(trial.cost.value()),
      trial.metric ? Real(*trial.metric) : SqlValue(), OptionalUnit(trial.epoch_cost),
      OptionalUnit(trial.power_limit), Text(trial.reason), Integer(trial.undisturbed ? 1 : 0),
      Integer(trial.shared ? 1 : 0), Integer(trial.unmeasured ? 1 : 0), Text(trial.why));
  ZEUS_RETURN_IF_ERROR(CheckValues(row, "trial"));
  return row;
}

Result<SqlRow> ToRow(const JobEvent& event) {
  ZEUS_TRY(std::string detail, StorableJson(event.detail));
  return Values(Text(event.job_id), Integer(event.sequence), Integer(SqlTime(event.at)),
                Text(Name(event.kind)), event.trial ? Integer(*event.trial) : SqlValue(),
                std::move(detail));
}

Result<JobTexts> JobTexts::From(SqlRow row) {
  RowReader reader("jobs", std::move(row));
  JobTexts texts;
  Job& job = texts.job;
  job.spec.id = reader.Text();
  texts.spec = reader.Text();
  job.seed = reader.Checked(ParseUnsigned(reader.Text()));
  job.created_at = reader.Time();
  job.recurrences = reader.Integer();
  job.trials = reader.Integer();
  job.events = reader.Integer();
  texts.state = reader.Text();
  job.least_cost = WithUnit<JouleUnit>(reader.OptionalReal());
  if (const auto batch_size = reader.OptionalInteger())
    job.least_cost_batch_size = static_cast<int>(*batch_size);
  ZEUS_RETURN_IF_ERROR(reader.status());
  return texts;
}

Result<JobSpec> SpecFrom(const std::string& text) {
  RowReader reader("jobs", Values(text));
  JobSpec spec = reader.Checked(JobSpecFromJson(reader.JsonValue()));
  ZEUS_RETURN_IF_ERROR(reader.status());
  return spec;
}

Result<Json> StateFrom(const std::string& text) {
  RowReader reader("jobs", Values(text));
  Json state = reader.JsonValue();
  ZEUS_RETURN_IF_ERROR(reader.status());
  return state;
}

Result<Trial> TrialFrom(SqlRow row) {
  RowReader reader("trials", std::move(row));
  Trial trial;
  trial.job_id = reader.Text();
  trial.number = reader.Integer();
  trial.recurrence = reader.Integer();
  trial.attempt = reader.SmallInteger();
  trial.batch_size = reader.SmallInteger();
  trial.role = reader.Named(RunRoleNamed);
  trial.gpu_model = reader.Text();
  trial.max_power = Watts(reader.Real());
  trial.status = reader.Named(TrialStatusNamed);
  trial.request_id = reader.TextOrNothing();
  trial.started_at = reader.Time();
  trial.lease = Seconds(reader.Real());
  trial.lease_until = reader.Time();
  trial.ended_at = reader.OptionalTime();
  trial.epochs = reader.SmallInteger();
  trial.time = Seconds(reader.Real());
  trial.energy = Joules(reader.Real());
  trial.cost = Joules(reader.Real());
  trial.metric = reader.OptionalReal();
  trial.epoch_cost = WithUnit<JouleUnit>(reader.OptionalReal());
  trial.power_limit = WithUnit<WattUnit>(reader.OptionalReal());
  trial.reason = reader.Text();
  trial.undisturbed = reader.Integer() != 0;
  trial.shared = reader.Integer() != 0;
  trial.unmeasured = reader.Integer() != 0;
  trial.why = reader.Text();
  ZEUS_RETURN_IF_ERROR(reader.status());
  return trial;
}

Result<JobEvent> EventFrom(SqlRow row) {
  RowReader reader("events", std::move(row));
  JobEvent event;
  event.job_id = reader.Text();
  event.sequence = reader.Integer();
  event.at = reader.Time();
  event.kind = reader.Named(EventKindNamed);
  event.trial = reader.OptionalInteger();
  event.detail = reader.JsonValue();
  ZEUS_RETURN_IF_ERROR(reader.status());
  return event;
}

ParsedJobs::Entry ParsedJobs::Find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? Entry{} : found->second;
}

// Drops everything when the cache is full: jobs in use come back at once.
void ParsedJobs::Keep(const std::string& id, Entry entry) {
  const std::lock_guard lock(mutex_);
  bytes_ +=
      (entry.spec ? entry.spec->text.size() : 0) + (entry.state ? entry.state->text.size() : 0);
  if (bytes_ > kMostBytes) {
    entries_.clear();
    bytes_ = 0;
  }
  Entry& kept = entries_[id];
  if (entry.spec) kept.spec = std::move(entry.spec);
  if (entry.state) kept.state = std::move(entry.state);
}

void ParsedJobs::Expect(const std::string& id, std::string state_text, const Json& state) {
  Keep(id,
       {.state = std::make_shared<const Parsed<Json>>(Parsed<Json>{std::move(state_text), state})});
}

Result<Job> ParsedJobs::JobFrom(SqlRow row) {
  ZEUS_TRY(JobTexts texts, JobTexts::From(std::move(row)));
  const std::string id = texts.job.spec.id;
  const Entry known = Find(id);
  Entry fresh;
  if (known.spec && known.spec->text == texts.spec) {
    texts.job.spec = known.spec->value;
  } else {
    auto spec = SpecFrom(texts.spec);
    if (!spec.ok()) return std::move(spec).error().While("job " + Quote(id));
    texts.job.spec = std::move(spec).value();
    fresh.spec = std::make_shared<const Parsed<JobSpec>>(
        Parsed<JobSpec>{std::move(texts.spec), texts.job.spec});
  }
  if (known.state && known.state->text == texts.state) {
    texts.job.policy_state = known.state->value;
  } else {
    auto state = StateFrom(texts.state);
    if (!state.ok()) return std::move(state).error().While("job " + Quote(id));
    texts.job.policy_state = std::move(state).value();
    fresh.state = std::make_shared<const Parsed<Json>>(
        Parsed<Json>{std::move(texts.state), texts.job.policy_state});
  }
  if (fresh.spec || fresh.state) Keep(id, std::move(fresh));
  return std::move(texts.job);
}

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
  static const std::string kInsert = InsertInto("trials", kTrialColumns, 26);
  ZEUS_TRY(SqlRow row, ToRow(trial));
  Put(kInsert, std::move(row), trial);
  return Ok();
}

Status SqlJobTransaction::UpdateTrial(const Trial& trial) {
  static const std::string kUpdate = "UPDATE trials SET (" + kTrialColumnsButKey + ") = (" +
                                     Placeholders(3, 26) + ") WHERE job_id = $1 AND number = $2";
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
