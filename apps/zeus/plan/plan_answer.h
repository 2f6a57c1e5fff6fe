#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/plan/plan_flags.h"
#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/frontier.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/planner.h"
#include "zeus/optimizer/pipeline/problem.h"
#include "zeus/optimizer/pipeline/reference_schedule.h"

namespace zeus::cli {

// The best iteration that may be slower than the baseline by a share: 0.05 is 5 %.
struct SlackRow {
  double slowdown = 0;
  Seconds deadline{0};
  Joules bound{};                                // Least energy, from the frontier.
  std::optional<pipeline::PipelinePlan> plan{};  // Its instructions are left out.
  double saving = 0;  // Saving of the plan, or of the bound if there is no plan.
};

// The complete result of `zeus plan`.
struct PlanAnswer {
  pipeline::Problem problem{};
  pipeline::CostKind cost = pipeline::CostKind::kHull;
  pipeline::Evaluation baseline{};  // Every computation at its highest clock.
  Seconds fastest{0};
  std::vector<pipeline::FrontierPoint> frontier{};  // Empty if only one deadline was solved.
  std::vector<SlackRow> slacks{};
  std::optional<pipeline::PipelinePlan> plan{};
  std::string plan_name = "plan";
  pipeline::ClockChangeRules rules{};  // The rules that the plan obeys.
  double saving = 0;                   // Saving of the plan.
  // Set if a straggler slows down several replicas.
  std::optional<pipeline::ReplicaOutcome> replicas{};
  int data_parallel = 1;
  Seconds solve_time{0};
  Seconds plan_time{0};
  std::string method{};  // "the whole frontier", "this deadline alone".
};

// `clock` measures the duration of solving.
Result<PlanAnswer> AnswerPlan(pipeline::Problem problem, const PlanRequest& request,
                              const Clock& clock);

// Evaluates a schedule that another program made.
Result<PlanAnswer> AnswerReference(pipeline::Problem problem,
                                   const std::vector<pipeline::RankClocks>& ranks, Seconds latency,
                                   const Clock& clock);

// Returns the output of `zeus plan --json` (docs/formats.md).
Json ToJson(const PlanAnswer& answer);

}  // namespace zeus::cli
