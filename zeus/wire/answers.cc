#include "zeus/wire/answers.h"

#include <fmt/format.h>

#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/wire/quantity_fields.h"

namespace zeus::wire {
namespace {

// The value of a field as it is; null when it is absent.
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

std::string Text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

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

}  // namespace zeus::wire
