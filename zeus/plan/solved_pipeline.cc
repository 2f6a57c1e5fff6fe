#include "zeus/plan/solved_pipeline.h"

#include <utility>

#include "zeus/plan/plan_spec.h"

namespace zeus {
namespace {

// A straggler comes, stays and goes: few paces are asked for again.
constexpr std::size_t kMostPlans = 8;

}  // namespace

Result<std::shared_ptr<const SolvedPipeline>> SolvedPipeline::Solve(
    const PlanSpec& spec, const pipeline::SolveOptions& options) {
  ZEUS_TRY(pipeline::Problem problem, ProblemOf(spec));
  ZEUS_TRY(std::unique_ptr<pipeline::Planner> planner,
           pipeline::Planner::Make(std::move(problem), {.solve = options}));
  return std::shared_ptr<const SolvedPipeline>(new SolvedPipeline(std::move(planner), spec));
}

SolvedPipeline::SolvedPipeline(std::unique_ptr<pipeline::Planner> planner, const PlanSpec& spec)
    : planner_(std::move(planner)),
      rules_(spec.clock_changes),
      usual_deadline_(planner_->baseline().time * spec.slowdown),
      ranks_(spec.profile.stages * spec.data_parallel * spec.tensor_parallel) {}

Result<SolvedPipeline::Plan> SolvedPipeline::PlanAt(std::optional<Seconds> pace) const {
  if (pace && *pace <= usual_deadline_) pace.reset();
  const std::optional<double> key = pace ? std::optional(pace->count()) : std::nullopt;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = plans_.find(key); known != plans_.end()) return known->second;
  }
  ZEUS_TRY(pipeline::PipelinePlan made,
           pace ? planner_->PlanForPace(*pace, rules_) : planner_->Plan(usual_deadline_, rules_));
  auto plan = std::make_shared<const pipeline::PipelinePlan>(std::move(made));
  const std::lock_guard lock(mutex_);
  if (plans_.size() >= kMostPlans) plans_.clear();
  return plans_.try_emplace(key, std::move(plan)).first->second;
}

Result<pipeline::PipelinePlan> SolvedPipeline::PlanFor(Seconds deadline) const {
  return planner_->Plan(deadline, rules_);
}

PlanFrontier SolvedPipeline::frontier() const {
  return {.fastest_time = planner_->fastest_time(),
          .baseline_time = baseline().time,
          .baseline_energy = baseline().energy,
          .points = planner_->frontier().points()};
}

bool SameClocks(const pipeline::PipelinePlan& a, const pipeline::PipelinePlan& b) {
  if (a.stages.size() != b.stages.size()) return false;
  for (std::size_t stage = 0; stage < a.stages.size(); ++stage) {
    if (a.stages[stage].size() != b.stages[stage].size()) return false;
    for (std::size_t i = 0; i < a.stages[stage].size(); ++i)
      if (a.stages[stage][i].clock != b.stages[stage][i].clock) return false;
  }
  return true;
}

}  // namespace zeus
