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
  return {{"recurrences", amounts->count},
          {"energy_joules", amounts->energy.mean},
          {"energy_sigma_joules", OrNull(amounts->energy.sigma)},
          {"time_seconds", amounts->time.mean},
          {"time_sigma_seconds", OrNull(amounts->time.sigma)},
          {"cost_joules", amounts->cost.mean},
          {"cost_sigma_joules", OrNull(amounts->cost.sigma)}};
}

Json ToJson(const RecurrenceAmounts& amounts) {
  return {{"recurrence", amounts.recurrence},
          {"tries", amounts.tries},
          {"batch_size", amounts.batch_size},
          {"converged", amounts.converged},
          {"role", Name(amounts.role)},
          {"shared", amounts.shared},
          {"energy_joules", amounts.energy.value()},
          {"time_seconds", amounts.time.count()},
          {"cost_joules", amounts.cost.value()}};
}

Json ToJson(const MeasuredArm& arm) {
  return {{"batch_size", arm.batch_size},
          {"runs", arm.runs},
          {"reached", arm.reached},
          {"cost_joules", arm.reached > 0 ? Json(arm.cost.mean) : Json()},
          {"cost_sigma_joules", OrNull(arm.cost.sigma)}};
}

}  // namespace

Json ToJson(const Lessons& lessons) {
  Json recurrences = Json::array();
  for (const RecurrenceAmounts& amounts : lessons.recurrences)
    recurrences.push_back(ToJson(amounts));
  Json trials = Json::array();
  for (const Trial& trial : lessons.trials) trials.push_back(wire::ToJson(trial));
  Json measured = Json::array();
  for (const MeasuredArm& arm : lessons.measured) measured.push_back(ToJson(arm));
  return {{"schema", "zeus.job/2"},
          {"job", wire::ToJson(lessons.job, wire::JobProgress{lessons.arms.stage,
                                                              lessons.arms.best_batch_size})},
          {"arms", wire::ToJson(lessons.arms)},
          {"best_batch_size", lessons.arms.best_batch_size},
          {"cheapest_batch_size", lessons.cheapest ? Json(*lessons.cheapest) : Json()},
          {"measured", std::move(measured)},
          {"power_limit_watts", lessons.power_limit ? Json(lessons.power_limit->value()) : Json()},
          {"at_best", ToJson(lessons.at_best)},
          {"savings", wire::ToJson(lessons.savings)},
          {"total", ToJson(lessons.total)},
          {"baseline", ToJson(lessons.baseline)},
          {"exploration", ToJson(lessons.exploration)},
          {"recurrences", std::move(recurrences)},
          {"trials", std::move(trials)}};
}

}  // namespace zeus::cli
