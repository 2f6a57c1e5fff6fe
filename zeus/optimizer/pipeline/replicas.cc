#include "zeus/optimizer/pipeline/replicas.h"

#include <fmt/format.h>

#include <algorithm>

namespace zeus::pipeline {
namespace {

Status CheckScenario(const ReplicaScenario& scenario) {
  const auto invalid = [](std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message)};
  };
  if (scenario.replicas < 1) return invalid("replicas: a job has at least 1 pipeline");
  if (scenario.stragglers < 0 || scenario.stragglers > scenario.replicas)
    return invalid(fmt::format("stragglers: {} of {} pipelines cannot be slow", scenario.stragglers,
                               scenario.replicas));
  if (!(scenario.slowdown >= 1) || !(scenario.slowdown <= 1000))
    return invalid(fmt::format("slowdown: {} is not between 1 and 1000", scenario.slowdown));
  return Ok();
}

}  // namespace

Result<ReplicaOutcome> PlanReplicas(const Planner& planner, const ReplicaScenario& scenario) {
  ZEUS_RETURN_IF_ERROR(CheckScenario(scenario));
  const Evaluation& baseline = planner.baseline();
  const Problem& problem = planner.problem();
  const auto waiting = [&](Seconds time) {
    return problem.blocking_power * time * static_cast<double>(problem.stages);
  };
  ReplicaOutcome outcome;
  outcome.pace = scenario.stragglers > 0 ? baseline.time * scenario.slowdown : baseline.time;
  ZEUS_TRY(const PipelinePlan for_pace, planner.PlanForPace(outcome.pace));
  ZEUS_TRY(const PipelinePlan alone, planner.Plan(baseline.time));
  const Joules straggler = baseline.energy * scenario.slowdown;
  const auto slow = static_cast<double>(scenario.stragglers);
  const auto others = static_cast<double>(scenario.replicas - scenario.stragglers);
  outcome.baseline_energy =
      slow * straggler + others * (baseline.energy + waiting(outcome.pace - baseline.time));
  outcome.planned_energy = slow * straggler + others * for_pace.energy;
  outcome.intrinsic_energy =
      slow * straggler + others * (alone.energy + waiting(outcome.pace - alone.time));
  return outcome;
}

}  // namespace zeus::pipeline
