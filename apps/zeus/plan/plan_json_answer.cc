#include "apps/zeus/plan/plan_json_answer.h"

#include <utility>

#include "zeus/base/json.h"

namespace zeus::cli {
namespace {

using pipeline::PipelinePlan;

Json Summary(const PipelinePlan& plan, double saving) {
  return {{"deadline_seconds", plan.deadline.count()},
          {"time_seconds", plan.time.count()},
          {"energy_joules", plan.energy.value()},
          {"waits_until_seconds", plan.waits_until.count()},
          {"bound_joules", plan.bound.value()},
          {"gap", plan.gap()},
          {"saving", saving},
          {"clock_changes", plan.clock_changes}};
}

Json ToJson(const SlackRow& row) {
  Json json = {{"slowdown", row.slowdown},
               {"deadline_seconds", row.deadline.count()},
               {"bound_joules", row.bound.value()}};
  if (row.plan) {
    json["time_seconds"] = row.plan->time.count();
    json["energy_joules"] = row.plan->energy.value();
    json["gap"] = row.plan->gap();
  }
  json["saving"] = row.saving;
  return json;
}

Json ToJson(const pipeline::ReplicaOutcome& outcome, int replicas) {
  return {{"replicas", replicas},
          {"stragglers", 1},
          {"pace_seconds", outcome.pace.count()},
          {"baseline_energy_joules", outcome.baseline_energy.value()},
          {"planned_energy_joules", outcome.planned_energy.value()},
          {"intrinsic_energy_joules", outcome.intrinsic_energy.value()},
          {"saving", outcome.saving()},
          {"intrinsic_saving", outcome.intrinsic_saving()}};
}

Json PipelineJson(const pipeline::Problem& problem) {
  return {{"name", problem.name},
          {"stages", problem.stages},
          {"microbatches", problem.microbatches},
          {"computations", problem.computations.size()},
          {"dependencies", problem.graph.edges()},
          {"blocking_power_watts", problem.blocking_power.value()}};
}

}  // namespace

Json ToJson(const PlanAnswer& answer) {
  const bool hull = answer.cost == pipeline::CostKind::kHull;
  Json json = {{"pipeline", PipelineJson(answer.problem)},
               {"cost", hull ? "hull" : "exponential"},
               {"solved", answer.method},
               {"solve_seconds", answer.solve_time.count()},
               {"baseline",
                {{"time_seconds", answer.baseline.time.count()},
                 {"energy_joules", answer.baseline.energy.value()}}},
               {"fastest_seconds", answer.fastest.count()},
               {"frontier", Json::array()},
               {"slowdowns", Json::array()},
               {"plan", nullptr}};
  for (const pipeline::FrontierPoint& point : answer.frontier)
    json["frontier"].push_back(
        {{"time_seconds", point.time.count()}, {"energy_joules", point.energy.value()}});
  for (const SlackRow& row : answer.slacks) json["slowdowns"].push_back(ToJson(row));
  if (answer.plan) json["plan"] = Summary(*answer.plan, answer.saving);
  if (answer.replicas) json["replicas"] = ToJson(*answer.replicas, answer.data_parallel);
  return json;
}

}  // namespace zeus::cli
