#include "apps/zeus/job/lessons.h"
#include "zeus/base/json.h"
#include "zeus/wire/answers.h"

namespace zeus::cli {
namespace {

Json ToJson(const RunAmounts& amounts) {
  return {{"runs", amounts.runs},
          {"energy_joules", amounts.energy.value()},
          {"time_seconds", amounts.time.count()},
          {"cost_joules", amounts.cost.value()}};
}

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json ToJson(const std::optional<UsualAmounts>& amounts) {
  if (!amounts) return {};
  return {{"recurrences", amounts->recurrences},
          {"energy_joules", amounts->energy.mean},
          {"energy_sigma_joules", OrNull(amounts->energy.sigma)},
          {"time_seconds", amounts->time.mean},
          {"time_sigma_seconds", OrNull(amounts->time.sigma)},
          {"cost_joules", amounts->cost.mean},
          {"cost_sigma_joules", OrNull(amounts->cost.sigma)}};
}

Json ToJson(const RecurrenceAmounts& amounts) {
  return {{"recurrence", amounts.recurrence},        {"tries", amounts.tries},
          {"batch_size", amounts.batch_size},        {"converged", amounts.converged},
          {"energy_joules", amounts.energy.value()}, {"time_seconds", amounts.time.count()},
          {"cost_joules", amounts.cost.value()}};
}

Json ToJson(const std::optional<Savings>& saved) {
  if (!saved) return {};
  return {
      {"energy_percent", saved->energy.mean}, {"energy_sigma_percent", OrNull(saved->energy.sigma)},
      {"time_percent", saved->time.mean},     {"time_sigma_percent", OrNull(saved->time.sigma)},
      {"cost_percent", saved->cost.mean},     {"cost_sigma_percent", OrNull(saved->cost.sigma)}};
}

}  // namespace

Json ToJson(const Lessons& lessons, const Lessons* baseline) {
  Json recurrences = Json::array();
  for (const RecurrenceAmounts& amounts : lessons.recurrences)
    recurrences.push_back(ToJson(amounts));
  Json trials = Json::array();
  for (const Trial& trial : lessons.trials) trials.push_back(wire::ToJson(trial));
  Json json{
      {"schema", "zeus.job/1"},
      {"job", wire::ToJson(lessons.job,
                           wire::JobProgress{lessons.arms.stage, lessons.arms.best_batch_size})},
      {"arms", wire::ToJson(lessons.arms)},
      {"best_batch_size", lessons.arms.best_batch_size},
      {"power_limit_watts", lessons.power_limit ? Json(lessons.power_limit->value()) : Json()},
      {"at_best", ToJson(lessons.at_best)},
      {"at_default", ToJson(lessons.at_default)},
      {"saved", ToJson(SavedAgainst(lessons.at_best, lessons.at_default))},
      {"total", ToJson(lessons.total)},
      {"exploration", ToJson(lessons.exploration)},
      {"recurrences", std::move(recurrences)},
      {"trials", std::move(trials)}};
  if (baseline != nullptr) {
    json["baseline"] = {{"job", baseline->job.spec.id},
                        {"at_default", ToJson(baseline->at_default)},
                        {"saved", ToJson(SavedAgainst(lessons.at_best, baseline->at_default))}};
  }
  return json;
}

}  // namespace zeus::cli
