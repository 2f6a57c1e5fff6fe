#include "zeus/wire/answers.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/wire/requests.h"

namespace zeus::wire {
namespace {

// Returns the value of a field, or null when the field is absent.
const Json& Part(const Json& json, const char* field) {
  static const Json kAbsent;
  const auto found = json.find(field);
  return found == json.end() ? kAbsent : *found;
}

template <class T, class Reader>
Result<std::vector<T>> ListFromJson(const Json& json, const char* field, Reader read) {
  const Json& list = Part(json, field);
  if (!list.is_array())
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: must be a list", field)};
  std::vector<T> items;
  items.reserve(list.size());
  for (const Json& item : list) {
    ZEUS_TRY(T value, read(item));
    items.push_back(std::move(value));
  }
  return items;
}

}  // namespace

// --- jobs ---

Json ToJson(const Job& job, const std::optional<JobProgress>& progress) {
  return {{"spec", zeus::ToJson(job.spec)},
          {"seed", job.seed},
          {"created_at", ToExactText(job.created_at)},
          {"recurrences", job.recurrences},
          {"trials", job.trials},
          {"events", job.events},
          {"least_cost_joules", OrNull(job.least_cost)},
          {"least_cost_batch_size", OrNull(job.least_cost_batch_size)},
          {"stage", progress ? Json(progress->stage) : Json()},
          {"best_batch_size", progress ? Json(progress->best_batch_size) : Json()}};
}

Result<Job> JobFromJson(const Json& json) {
  ZEUS_TRY(JobSpec spec, JobSpecFromJson(Part(json, "spec")));
  Job job{.spec = std::move(spec)};
  FieldReader fields("a job", json);
  fields.Require("seed", job.seed);
  RequireTime(fields, "created_at", job.created_at);
  fields.Require("recurrences", job.recurrences);
  fields.Require("trials", job.trials);
  fields.Read("events", job.events);
  ReadQuantity(fields, "least_cost_joules", job.least_cost);
  fields.Read("least_cost_batch_size", job.least_cost_batch_size);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return job;
}

// --- trials ---

Json ToJson(const Trial& trial) {
  return {{"job_id", trial.job_id},
          {"number", trial.number},
          {"recurrence", trial.recurrence},
          {"attempt", trial.attempt},
          {"batch_size", trial.batch_size},
          {"role", Name(trial.role)},
          {"gpu_model", trial.gpu_model},
          {"max_power_watts", trial.max_power.value()},
          {"status", Name(trial.status)},
          {"request_id", trial.request_id},
          {"started_at", ToExactText(trial.started_at)},
          {"lease_seconds", trial.lease.count()},
          {"lease_until", ToExactText(trial.lease_until)},
          {"ended_at", trial.ended_at ? Json(ToExactText(*trial.ended_at)) : Json()},
          {"epochs", trial.epochs},
          {"time_seconds", trial.time.count()},
          {"energy_joules", trial.energy.value()},
          {"cost_joules", trial.cost.value()},
          {"metric", OrNull(trial.metric)},
          {"epoch_cost_joules", OrNull(trial.epoch_cost)},
          {"power_limit_watts", OrNull(trial.power_limit)},
          {"reason", trial.reason},
          {"why", trial.why},
          {"undisturbed", trial.undisturbed},
          {"shared", trial.shared},
          {"unmeasured", trial.unmeasured}};
}

namespace {

void ReadPlace(FieldReader& fields, Trial& trial) {
  std::string role;
  std::string status;
  fields.Require("job_id", trial.job_id);
  fields.Require("number", trial.number);
  fields.Require("recurrence", trial.recurrence);
  fields.Require("attempt", trial.attempt);
  fields.Require("batch_size", trial.batch_size);
  fields.Require("gpu_model", trial.gpu_model);
  RequireQuantity(fields, "max_power_watts", trial.max_power);
  fields.Require("role", role);
  fields.Require("status", status);
  const auto known_role = RunRoleNamed(role);
  if (!known_role) fields.Fail("role", "is not known");
  const auto known_status = TrialStatusNamed(status);
  if (!known_status) fields.Fail("status", "is not known");
  trial.role = known_role.value_or(trial.role);
  trial.status = known_status.value_or(trial.status);
}

void ReadLife(FieldReader& fields, Trial& trial) {
  fields.Read("request_id", trial.request_id);
  RequireTime(fields, "started_at", trial.started_at);
  RequireQuantity(fields, "lease_seconds", trial.lease);
  RequireTime(fields, "lease_until", trial.lease_until);
  ReadTime(fields, "ended_at", trial.ended_at);
  fields.Read("reason", trial.reason);
  fields.Read("why", trial.why);
}

void ReadResults(FieldReader& fields, Trial& trial) {
  fields.Require("epochs", trial.epochs);
  RequireQuantity(fields, "time_seconds", trial.time);
  RequireQuantity(fields, "energy_joules", trial.energy);
  RequireQuantity(fields, "cost_joules", trial.cost);
  fields.Read("metric", trial.metric);
  ReadQuantity(fields, "epoch_cost_joules", trial.epoch_cost);
  ReadQuantity(fields, "power_limit_watts", trial.power_limit);
  fields.Read("undisturbed", trial.undisturbed);
  fields.Read("shared", trial.shared);
  fields.Read("unmeasured", trial.unmeasured);
}

}  // namespace

Result<Trial> TrialFromJson(const Json& json) {
  Trial trial;
  FieldReader fields("a trial", json);
  ReadPlace(fields, trial);
  ReadLife(fields, trial);
  ReadResults(fields, trial);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return trial;
}

Json ToJson(const StartedTrial& started) {
  return {{"trial", ToJson(started.trial)},
          {"max_epochs", started.max_epochs},
          {"unprofiled_batch_sizes", started.unprofiled_batch_sizes}};
}

Result<StartedTrial> StartedTrialFromJson(const Json& json) {
  ZEUS_TRY(Trial trial, TrialFromJson(Part(json, "trial")));
  StartedTrial started{.trial = std::move(trial)};
  FieldReader fields("a started trial", json);
  fields.Require("max_epochs", started.max_epochs);
  fields.Require("unprofiled_batch_sizes", started.unprofiled_batch_sizes);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return started;
}

Json ToJson(const ReportAnswer& answer) {
  return {{"stop", answer.stop},
          {"converged", answer.converged},
          {"retry", answer.retry},
          {"message", answer.message},
          {"trial", ToJson(answer.trial)}};
}

Result<ReportAnswer> ReportAnswerFromJson(const Json& json) {
  ZEUS_TRY(Trial trial, TrialFromJson(Part(json, "trial")));
  ReportAnswer answer{.trial = std::move(trial)};
  FieldReader fields("an answer to a report", json);
  fields.Require("stop", answer.stop);
  fields.Require("converged", answer.converged);
  fields.Require("retry", answer.retry);
  fields.Require("message", answer.message);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return answer;
}

// --- events and pages ---

Json ToJson(const JobEvent& event) {
  return {{"job_id", event.job_id},   {"sequence", event.sequence},   {"at", ToExactText(event.at)},
          {"kind", Name(event.kind)}, {"trial", OrNull(event.trial)}, {"detail", event.detail}};
}

Result<JobEvent> JobEventFromJson(const Json& json) {
  JobEvent event{.detail = Part(json, "detail")};
  std::string kind_name;
  FieldReader fields("an event", json);
  fields.Require("job_id", event.job_id);
  fields.Require("sequence", event.sequence);
  RequireTime(fields, "at", event.at);
  fields.Read("trial", event.trial);
  fields.Require("kind", kind_name);
  const auto kind = EventKindNamed(kind_name);
  if (!kind) fields.Fail("kind", fmt::format("{} is not known", Quote(kind_name)));
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  event.kind = *kind;
  return event;
}

Result<std::vector<Job>> JobsFromJson(const Json& json) {
  return ListFromJson<Job>(json, "jobs", JobFromJson);
}

Result<std::vector<Trial>> TrialsFromJson(const Json& json) {
  return ListFromJson<Trial>(json, "trials", TrialFromJson);
}

Result<std::vector<JobEvent>> EventsFromJson(const Json& json) {
  return ListFromJson<JobEvent>(json, "events", JobEventFromJson);
}

// --- arms ---

namespace {

constexpr std::array<std::pair<ArmState, std::string_view>, 3> kArmStates = {{
    {ArmState::kUntried, "untried"},
    {ArmState::kCandidate, "candidate"},
    {ArmState::kDropped, "dropped"},
}};

std::optional<ArmState> ArmStateNamed(std::string_view name) {
  for (const auto& [state, state_name] : kArmStates)
    if (state_name == name) return state;
  return std::nullopt;
}

Json ToJson(const ArmBelief& arm) {
  return {{"batch_size", arm.batch_size},
          {"state", Name(arm.state)},
          {"runs", arm.runs},
          {"converged", arm.converged},
          {"epochs", OrNull(arm.epochs)},
          {"epoch_cost_joules", OrNull(arm.epoch_cost)},
          {"epoch_cost_profiled", arm.epoch_cost_profiled},
          {"cost_joules", OrNull(arm.cost)},
          {"cost_sigma_joules", OrNull(arm.cost_sigma)}};
}

// Unlike other quantities, an estimated cost may be negative while it is based on few runs.
void ReadCost(FieldReader& fields, const char* field, std::optional<Joules>& target) {
  std::optional<double> number;
  fields.Read(field, number);
  if (number) target = Joules(*number);
}

Result<ArmBelief> ArmFromJson(const Json& json) {
  ArmBelief arm;
  std::string state;
  FieldReader fields("an arm", json);
  fields.Require("batch_size", arm.batch_size);
  fields.Require("state", state);
  fields.Require("runs", arm.runs);
  fields.Require("converged", arm.converged);
  fields.Read("epochs", arm.epochs);
  ReadCost(fields, "epoch_cost_joules", arm.epoch_cost);
  fields.Require("epoch_cost_profiled", arm.epoch_cost_profiled);
  ReadCost(fields, "cost_joules", arm.cost);
  ReadCost(fields, "cost_sigma_joules", arm.cost_sigma);
  const auto known_state = ArmStateNamed(state);
  if (!known_state) fields.Fail("state", "is not known");
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  arm.state = *known_state;
  return arm;
}

Json ToJson(const Explanation& told) {
  return {{"batch_size", told.choice.batch_size},
          {"role", Name(told.choice.role)},
          {"why", told.why},
          {"settled", told.settled},
          {"outlook", told.outlook}};
}

Result<Explanation> ExplanationFromJson(const Json& json) {
  Explanation told;
  std::string role;
  FieldReader fields("the next choice", json);
  fields.Require("batch_size", told.choice.batch_size);
  fields.Require("role", role);
  fields.Require("why", told.why);
  fields.Require("settled", told.settled);
  fields.Require("outlook", told.outlook);
  const auto known_role = RunRoleNamed(role);
  if (!known_role) fields.Fail("role", "is not known");
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  told.choice.role = *known_role;
  return told;
}

}  // namespace

std::string_view Name(ArmState state) {
  for (const auto& [known, name] : kArmStates)
    if (known == state) return name;
  return "unknown";
}

Json ToJson(const JobArms& arms) {
  Json list = Json::array();
  for (const ArmBelief& arm : arms.arms) list.push_back(ToJson(arm));
  return {{"gpu_model", arms.gpu_model},
          {"stage", arms.stage},
          {"best_batch_size", arms.best_batch_size},
          {"arms", std::move(list)},
          {"next", arms.next ? ToJson(*arms.next) : Json()}};
}

Result<JobArms> JobArmsFromJson(const Json& json) {
  JobArms arms;
  FieldReader fields("arms", json);
  fields.Require("gpu_model", arms.gpu_model);
  fields.Require("stage", arms.stage);
  fields.Require("best_batch_size", arms.best_batch_size);
  const auto list = json.find("arms");
  if (list == json.end() || !list->is_array()) fields.Fail("arms", "must be a list");
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  for (const Json& item : *list) {
    ZEUS_TRY(const ArmBelief arm, ArmFromJson(item));
    arms.arms.push_back(arm);
  }
  if (const Json& next = Part(json, "next"); !next.is_null()) {
    ZEUS_TRY(arms.next, ExplanationFromJson(next));
  }
  return arms;
}

// --- savings ---

namespace {

constexpr double kJoulesPerKilowattHour = 3.6e6;

std::string FieldName(const char* amount, const char* what, const char* unit) {
  return std::string(amount) + what + unit;
}

void AddMean(Json& json, const char* amount, const char* unit, const MeanAmount& mean, bool known) {
  json[FieldName(amount, "", unit)] = known ? Json(mean.mean) : Json();
  json[FieldName(amount, "_sigma", unit)] = OrNull(mean.sigma);
}

Json UsualJson(const UsualAmounts& usual) {
  Json json{{"count", usual.count}};
  const bool known = usual.count > 0;
  AddMean(json, "energy", "_joules", usual.energy, known);
  AddMean(json, "time", "_seconds", usual.time, known);
  AddMean(json, "cost", "_joules", usual.cost, known);
  return json;
}

void AddSaved(Json& json, const char* amount, const char* unit, const SavedAmount& saved) {
  json[FieldName(amount, "", "_percent")] = saved.percent;
  json[FieldName(amount, "_sigma", "_percent")] = saved.percent_sigma;
  json[FieldName(amount, "", unit)] = saved.total;
  json[FieldName(amount, "_sigma", unit)] = saved.total_sigma;
}

Json SavedJson(const JobSavings& savings) {
  const std::optional<JobSavings::Saved>& saved = savings.saved;
  if (!saved) return {};
  Json json = Json::object();
  AddSaved(json, "energy", "_joules", saved->energy);
  json["energy_kwh"] = saved->energy.total / kJoulesPerKilowattHour;
  json["energy_sigma_kwh"] = saved->energy.total_sigma / kJoulesPerKilowattHour;
  AddSaved(json, "time", "_seconds", saved->time);
  AddSaved(json, "cost", "_joules", saved->cost);
  if (savings.saved_carbon) AddTo(json, *savings.saved_carbon);
  return json;
}

Result<UsualAmounts> UsualFromJson(const Json& json) {
  UsualAmounts usual;
  FieldReader fields("what a training takes", json);
  fields.Require("count", usual.count);
  fields.ReadUnlessNull("energy_joules", usual.energy.mean);
  fields.Read("energy_sigma_joules", usual.energy.sigma);
  fields.ReadUnlessNull("time_seconds", usual.time.mean);
  fields.Read("time_sigma_seconds", usual.time.sigma);
  fields.ReadUnlessNull("cost_joules", usual.cost.mean);
  fields.Read("cost_sigma_joules", usual.cost.sigma);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return usual;
}

void ReadSaved(FieldReader& fields, const char* amount, const char* unit, SavedAmount& saved) {
  fields.Require(FieldName(amount, "", "_percent").c_str(), saved.percent);
  fields.Require(FieldName(amount, "_sigma", "_percent").c_str(), saved.percent_sigma);
  fields.Require(FieldName(amount, "", unit).c_str(), saved.total);
  fields.Require(FieldName(amount, "_sigma", unit).c_str(), saved.total_sigma);
}

Result<JobSavings::Saved> SavedFromJson(const Json& json) {
  JobSavings::Saved saved;
  FieldReader fields("what was saved", json);
  ReadSaved(fields, "energy", "_joules", saved.energy);
  ReadSaved(fields, "time", "_seconds", saved.time);
  ReadSaved(fields, "cost", "_joules", saved.cost);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return saved;
}

}  // namespace

Json ToJson(const JobSavings& savings) {
  return {{"job_id", savings.job_id},
          {"gpu_model", savings.gpu_model},
          {"baseline_job", savings.baseline_job},
          {"default_batch_size", savings.default_batch_size},
          {"baseline", UsualJson(savings.baseline)},
          {"zeus", UsualJson(savings.zeus)},
          {"runs", savings.runs},
          {"shared_runs", savings.shared},
          {"unmeasured_runs", savings.unmeasured},
          {"saved", SavedJson(savings)},
          {"unknown_because",
           savings.unknown_because.empty() ? Json() : Json(savings.unknown_because)}};
}

Result<JobSavings> JobSavingsFromJson(const Json& json) {
  JobSavings savings;
  FieldReader fields("savings", json);
  fields.Require("job_id", savings.job_id);
  fields.Require("gpu_model", savings.gpu_model);
  fields.Require("baseline_job", savings.baseline_job);
  fields.Require("default_batch_size", savings.default_batch_size);
  fields.Require("runs", savings.runs);
  fields.Require("shared_runs", savings.shared);
  fields.Read("unmeasured_runs", savings.unmeasured);
  fields.ReadUnlessNull("unknown_because", savings.unknown_because);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  ZEUS_TRY(savings.baseline, UsualFromJson(json.value("baseline", Json())));
  ZEUS_TRY(savings.zeus, UsualFromJson(json.value("zeus", Json())));
  if (const Json saved = json.value("saved", Json()); !saved.is_null()) {
    ZEUS_TRY(savings.saved, SavedFromJson(saved));
    ZEUS_TRY(CarbonReport carbon, CarbonReportFromJson(saved));
    if (carbon.emissions || carbon.cost) savings.saved_carbon = std::move(carbon);
  }
  return savings;
}

namespace {

Json ToJson(const pipeline::FrontierPoint& point) {
  return {{"time_seconds", point.time.count()},
          {"energy_joules", point.energy.value()},
          {"ticks", point.ticks}};
}

Result<pipeline::FrontierPoint> PointFromJson(const Json& json) {
  pipeline::FrontierPoint point;
  FieldReader fields("a point of a frontier", json);
  RequireQuantity(fields, "time_seconds", point.time);
  RequireQuantity(fields, "energy_joules", point.energy);
  fields.Require("ticks", point.ticks);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return point;
}

}  // namespace

Json ToJson(const CurrentPlan& plan) {
  return {{"id", plan.id},
          {"version", plan.version},
          {"pace_seconds", plan.pace ? Json(plan.pace->count()) : Json()},
          {"baseline_time_seconds", plan.baseline_time.count()},
          {"baseline_energy_joules", plan.baseline_energy.value()},
          {"plan", pipeline::ToJson(plan.plan)}};
}

Result<CurrentPlan> CurrentPlanFromJson(const Json& json) {
  CurrentPlan current;
  Json plan;
  FieldReader fields("a current plan", json);
  fields.Require("id", current.id);
  fields.Require("version", current.version);
  ReadQuantity(fields, "pace_seconds", current.pace);
  RequireQuantity(fields, "baseline_time_seconds", current.baseline_time);
  RequireQuantity(fields, "baseline_energy_joules", current.baseline_energy);
  fields.Require("plan", plan);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  ZEUS_TRY(current.plan, pipeline::PlanFromJson(plan));
  return current;
}

Json ToJson(const PlanFrontier& frontier) {
  Json points = Json::array();
  for (const pipeline::FrontierPoint& point : frontier.points) points.push_back(ToJson(point));
  return {{"fastest_time_seconds", frontier.fastest_time.count()},
          {"baseline_time_seconds", frontier.baseline_time.count()},
          {"baseline_energy_joules", frontier.baseline_energy.value()},
          {"points", std::move(points)}};
}

Result<PlanFrontier> PlanFrontierFromJson(const Json& json) {
  PlanFrontier frontier;
  Json points;
  FieldReader fields("a frontier", json);
  RequireQuantity(fields, "fastest_time_seconds", frontier.fastest_time);
  RequireQuantity(fields, "baseline_time_seconds", frontier.baseline_time);
  RequireQuantity(fields, "baseline_energy_joules", frontier.baseline_energy);
  fields.Require("points", points);
  if (!points.is_array()) fields.Fail("points", "must be a list");
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  for (const Json& point : points) {
    ZEUS_TRY(frontier.points.emplace_back(), PointFromJson(point));
  }
  return frontier;
}

Result<std::vector<std::string>> PlanIdsFromJson(const Json& json) {
  std::vector<std::string> ids;
  FieldReader fields("a list of plans", json);
  fields.Require("plans", ids);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return ids;
}

Json PaceToJson(std::optional<Seconds> pace) {
  return {{"pace_seconds", pace ? Json(pace->count()) : Json()}};
}

Result<PaceReport> PaceFromJson(const Json& json) {
  PaceReport report;
  std::optional<double> pace;
  FieldReader fields("a report of a pace", json);
  fields.Require("pace_seconds", pace);
  if (pace && !(*pace > 0))
    fields.Fail("pace_seconds", "must be greater than 0, or null when nobody is slow any more");
  fields.Read("rank", report.rank);
  ZEUS_RETURN_IF_ERROR(fields.Finish());
  if (pace) report.pace = Seconds(*pace);
  return report;
}

}  // namespace zeus::wire
