#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/planner.h"
#include "zeus/plan/plan_service.h"

namespace zeus {

// A pipeline whose frontier is known: answers for it are quick from here on. Thread-safe.
class SolvedPipeline {
 public:
  using Plan = std::shared_ptr<const pipeline::PipelinePlan>;

  // Takes long.
  static Result<std::shared_ptr<const SolvedPipeline>> Solve(const PlanSpec& spec,
                                                             const pipeline::SolveOptions& options);

  // The plan that holds while iterations take `pace` because of a straggler; nullopt: there is
  // none. A pace that the spec allows anyway is like none.
  Result<Plan> PlanAt(std::optional<Seconds> pace) const;
  Result<pipeline::PipelinePlan> PlanFor(Seconds deadline) const;
  PlanFrontier frontier() const;

  const pipeline::Evaluation& baseline() const { return planner_->baseline(); }
  int ranks() const { return ranks_; }
  // What it takes in memory grows with them.
  int computations() const { return planner_->problem().graph.size(); }

 private:
  SolvedPipeline(std::unique_ptr<pipeline::Planner> planner, const PlanSpec& spec);

  std::unique_ptr<const pipeline::Planner> planner_;
  const pipeline::ClockChangeRules rules_;
  const Seconds usual_deadline_;
  const int ranks_;
  mutable std::mutex mutex_;
  mutable std::map<std::optional<double>, Plan> plans_{};  // By pace; guarded by mutex_.
};

// Whether the same clocks are set, whatever else a plan foretells.
bool SameClocks(const pipeline::PipelinePlan& a, const pipeline::PipelinePlan& b);

}  // namespace zeus
