#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/plan/plan_flags.h"
#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/evaluation.h"
#include "zeus/optimizer/pipeline/frontier.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/planner.h"
#include "zeus/optimizer/pipeline/problem.h"
#include "zeus/optimizer/pipeline/reference_schedule.h"
#include "zeus/optimizer/pipeline/replicas.h"

namespace zeus::cli {

// What an iteration takes that may be slower than the baseline by a share: 0.05 is 5 %.
struct SlackRow {
  double slowdown = 0;
  Seconds deadline{0};
  Joules bound{};                                // On the frontier.
  std::optional<pipeline::PipelinePlan> plan{};  // Without its instructions.
  double saving = 0;                             // Of the plan; of the bound where there is none.
};

// Everything that `zeus plan` tells.
struct PlanAnswer {
  pipeline::Problem problem{};
  pipeline::CostKind cost = pipeline::CostKind::kHull;
  pipeline::Evaluation baseline{};  // Every computation at its highest clock.
  Seconds fastest{0};
  std::vector<pipeline::FrontierPoint> frontier{};  // Empty where one deadline alone was solved.
  std::vector<SlackRow> slacks{};
  std::optional<pipeline::PipelinePlan> plan{};
  std::string plan_name = "plan";
  pipeline::ClockChangeRules rules{};                  // That the plan keeps.
  double saving = 0;                                   // Of the plan.
  std::optional<pipeline::ReplicaOutcome> replicas{};  // Where a straggler slows several.
  int data_parallel = 1;
  Seconds solve_time{0};
  Seconds plan_time{0};
  std::string method{};  // "the whole frontier", "this deadline alone".
};

// `clock` measures how long solving takes.
Result<PlanAnswer> AnswerPlan(pipeline::Problem problem, const PlanRequest& request,
                              const Clock& clock);

// The same for a schedule that somebody else made.
Result<PlanAnswer> AnswerReference(pipeline::Problem problem,
                                   const std::vector<pipeline::RankClocks>& ranks, Seconds latency,
                                   const Clock& clock);

}  // namespace zeus::cli
