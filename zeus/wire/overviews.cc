#include "zeus/wire/overviews.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/job/memory_repository.h"
#include "zeus/wire/answers.h"
#include "zeus/wire/requests.h"

namespace zeus::wire {
namespace {

constexpr int kExportedAtOnce = 1000;

Json TimeOrNull(const std::optional<WallTime>& time) {
  return time ? Json(ToExactText(*time)) : Json();
}

// A mean per training and its sigma; null where there is none.
void AddMeasured(Json& json, const char* name, const char* unit, const MeanAmount& mean,
                 bool known) {
  json[fmt::format("{}_{}", name, unit)] = known ? Json(mean.mean) : Json();
  json[fmt::format("{}_sigma_{}", name, unit)] = OrNull(mean.sigma);
}

Json ChangeJson(const std::optional<RelativeChange>& change) {
  if (!change) return {};
  return {{"percent", change->percent}, {"sigma_percent", OrNull(change->sigma)}};
}

}  // namespace

Json ToJson(const RecurrenceAmounts& recurrence) {
  return {{"recurrence", recurrence.recurrence},
          {"tries", recurrence.tries},
          {"first_batch_size", recurrence.first_batch_size},
          {"batch_size", recurrence.batch_size},
          {"gpu_model", recurrence.gpu_model},
          {"role", Name(recurrence.role)},
          {"converged", recurrence.converged},
          {"under_way", recurrence.under_way},
          {"failed", recurrence.failed},
          {"profiling", recurrence.profiling},
          {"shared", recurrence.shared},
          {"unmeasured", recurrence.unmeasured},
          {"started_at", ToExactText(recurrence.started_at)},
          {"ended_at", TimeOrNull(recurrence.ended_at)},
          {"energy_joules", recurrence.energy.value()},
          {"time_seconds", recurrence.time.count()},
          {"cost_joules", recurrence.cost.value()}};
}

Json ToJson(const MeasuredArm& arm) {
  Json json{{"batch_size", arm.batch_size}, {"runs", arm.runs}, {"reached", arm.reached}};
  const bool known = arm.reached > 0;
  AddMeasured(json, "energy", "joules", arm.energy, known);
  AddMeasured(json, "time", "seconds", arm.time, known);
  AddMeasured(json, "cost", "joules", arm.cost, known);
  return json;
}

Json ToJson(const JobOverview& overview) {
  Json running = Json::array();
  for (const Trial& trial : overview.running) running.push_back(ToJson(trial));
  const JobArms& arms = overview.arms;
  return {{"job", ToJson(overview.job, JobProgress{.stage = arms.stage,
                                                   .best_batch_size = arms.best_batch_size})},
          {"next", ToJson(arms).at("next")},
          {"savings", ToJson(overview.savings)},
          {"latest_trial", overview.latest ? ToJson(*overview.latest) : Json()},
          {"running", std::move(running)}};
}

Json ToJson(const OtherEta& other) {
  Json json = ToJson(other.arms);
  Json measured = Json::array();
  for (const MeasuredArm& arm : other.measured) measured.push_back(ToJson(arm));
  json["eta"] = other.eta;
  json["own_best_batch_size"] = other.own_best;
  json["measured"] = std::move(measured);
  json["energy_change"] = ChangeJson(other.energy);
  json["time_change"] = ChangeJson(other.time);
  json["notes"] = other.notes;
  return json;
}

Json ToJson(const SpanSavings& span) {
  constexpr double kJoulesPerKwh = 3.6e6;
  return {{"from", ToExactText(span.from)},
          {"until", ToExactText(span.until)},
          {"jobs", span.jobs},
          {"recurrences", span.recurrences},
          {"charged_joules", span.charged.value()},
          {"energy_joules", span.energy},
          {"energy_sigma_joules", span.energy_sigma},
          {"energy_kwh", span.energy / kJoulesPerKwh},
          {"energy_sigma_kwh", span.energy_sigma / kJoulesPerKwh},
          {"energy_percent", span.energy_percent ? Json(*span.energy_percent) : Json()},
          {"energy_sigma_percent", span.energy_percent_sigma},
          {"time_seconds", span.time},
          {"time_sigma_seconds", span.time_sigma},
          {"unknown_jobs", span.unknown}};
}

Json ToJson(const PlanSummary& summary) {
  Json json{{"id", summary.id},
            {"created_at", ToExactText(summary.created_at)},
            {"version", summary.version},
            {"pace_seconds", summary.pace ? Json(summary.pace->count()) : Json()},
            {"stages", summary.stages},
            {"microbatches", summary.microbatches},
            {"schedule", summary.schedule},
            {"replicas", summary.replicas},
            {"gpus", summary.gpus},
            {"solved", Json()}};
  if (summary.solved)
    json["solved"] = {{"time_seconds", summary.solved->time.count()},
                      {"energy_joules", summary.solved->energy.value()},
                      {"baseline_time_seconds", summary.solved->baseline_time.count()},
                      {"baseline_energy_joules", summary.solved->baseline_energy.value()}};
  return json;
}

Result<std::string> ExportText(JobService& service, const std::string& job_id,
                               std::size_t most_bytes) {
  ZEUS_TRY(const Job job, service.GetJob(job_id));
  ZEUS_TRY(const std::vector<Trial> trials, AllTrials(service, job_id));
  std::string text;
  const auto add = [&text, most_bytes, &job_id](const char* kind, const Json& content) -> Status {
    Json line{{"record", kind}};
    line.update(content);
    text += JsonText(line) + "\n";
    if (text.size() <= most_bytes) return Ok();
    return Error{ErrorCode::kNotSupported,
                 fmt::format("job {} takes more than {} MB: use zeus job export", Quote(job_id),
                             most_bytes / 1'000'000)};
  };
  Json head = ToJson(job, std::nullopt);
  head["schema"] = "zeus.job_export/1";
  ZEUS_RETURN_IF_ERROR(add("job", head));
  for (const Trial& trial : trials) ZEUS_RETURN_IF_ERROR(add("trial", ToJson(trial)));
  for (std::int64_t after = 0;;) {
    ZEUS_TRY(const std::vector<JobEvent> events,
             service.ListEvents(job_id, after, kExportedAtOnce));
    for (const JobEvent& event : events) ZEUS_RETURN_IF_ERROR(add("event", ToJson(event)));
    if (events.size() < static_cast<std::size_t>(kExportedAtOnce)) return text;
    after = events.back().sequence;
  }
}

}  // namespace zeus::wire
