#include "zeus/store/job_rows.h"

#include <string_view>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/store/sql_values.h"

namespace zeus {
namespace {

SqlValue NumberOf(std::int64_t value) { return value; }
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
    "undisturbed, shared";
const std::string kTrialColumns = "job_id, number, " + kTrialColumnsButKey;
const std::string kEventColumns = "job_id, sequence, at, kind, trial, detail";

Result<SqlRow> ToRow(const Job& job) {
  ZEUS_TRY(std::string spec, StorableJson(ToJson(job.spec)));
  ZEUS_TRY(std::string state, StorableJson(job.policy_state));
  return Values(Text(job.spec.id), std::move(spec), std::to_string(job.seed),
                NumberOf(SqlTime(job.created_at)), NumberOf(job.recurrences), NumberOf(job.trials),
                NumberOf(job.events), std::move(state), OptionalUnit(job.least_cost),
                job.least_cost_batch_size ? NumberOf(*job.least_cost_batch_size) : SqlValue());
}

Result<SqlRow> UpdatedColumns(const Job& job) {
  ZEUS_TRY(std::string state, StorableJson(job.policy_state));
  return Values(
      job.spec.id, job.recurrences, job.trials, job.events, std::move(state),
      job.least_cost ? SqlValue(job.least_cost->value()) : SqlValue(),
      job.least_cost_batch_size ? SqlValue(std::int64_t{*job.least_cost_batch_size}) : SqlValue());
}

Result<SqlRow> ToRow(const Trial& trial) {
  SqlRow row =
      Values(Text(trial.job_id), NumberOf(trial.number), NumberOf(trial.recurrence),
             NumberOf(trial.attempt), NumberOf(trial.batch_size), Text(Name(trial.role)),
             Text(trial.gpu_model), Real(trial.max_power.value()), Text(Name(trial.status)),
             trial.request_id.empty() ? SqlValue() : Text(trial.request_id),
             NumberOf(SqlTime(trial.started_at)), Real(trial.lease.count()),
             NumberOf(SqlTime(trial.lease_until)), OptionalTime(trial.ended_at),
             NumberOf(trial.epochs), Real(trial.time.count()), Real(trial.energy.value()),
             Real(trial.cost.value()), trial.metric ? Real(*trial.metric) : SqlValue(),
             OptionalUnit(trial.epoch_cost), OptionalUnit(trial.power_limit), Text(trial.reason),
             NumberOf(trial.undisturbed ? 1 : 0), NumberOf(trial.shared ? 1 : 0));
  ZEUS_RETURN_IF_ERROR(CheckValues(row, "trial"));
  return row;
}

Result<SqlRow> ToRow(const JobEvent& event) {
  ZEUS_TRY(std::string detail, StorableJson(event.detail));
  return Values(Text(event.job_id), NumberOf(event.sequence), NumberOf(SqlTime(event.at)),
                Text(Name(event.kind)), event.trial ? NumberOf(*event.trial) : SqlValue(),
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

}  // namespace zeus
