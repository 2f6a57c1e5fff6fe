#pragma once

#include <memory>
#include <optional>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/evaluation.h"
#include "zeus/optimizer/pipeline/frontier.h"
#include "zeus/optimizer/pipeline/frontier_solver.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// What changing the clock costs. Without these a plan may change it before every instruction.
struct ClockChangeRules {
  int least_instructions = 1;  // Between two changes on a stage.
  Seconds latency{0};          // An instruction takes this much longer after a change.
};

// Plans one pipeline: holds its frontier, makes plans for deadlines. Expensive to make, cheap to
// ask. Plan() may be called from many threads.
class Planner {
 public:
  // Solves the whole frontier on the measured points (hull).
  static Result<std::unique_ptr<Planner>> Make(Problem problem, const SolveOptions& options = {});

  const Problem& problem() const { return problem_; }
  const CostTable& costs() const { return costs_; }
  const Frontier& frontier() const { return frontier_; }

  // All computations at their highest clock.
  const Evaluation& baseline() const { return baseline_; }
  // In true times. No plan is faster.
  Seconds fastest_time() const { return fastest_.time; }

  // The discrete plan of least energy that we find within `deadline`, in true times.
  // kInvalidArgument, naming fastest_time(), when there is none. A deadline beyond the frontier's
  // slowest point gets that point's plan.
  Result<PipelinePlan> Plan(Seconds deadline, const ClockChangeRules& rules = {}) const;

  // As Plan(), in a job whose iterations take `pace` because of somebody else: the energy includes
  // waiting for it.
  Result<PipelinePlan> PlanForPace(Seconds pace, const ClockChangeRules& rules = {}) const;

 private:
  Planner(Problem problem, CostTable costs, Frontier frontier);

  Result<PipelinePlan> PlanTowards(Ticks target, Seconds deadline, std::optional<Seconds> pace,
                                   const ClockChangeRules& rules) const;

  Problem problem_;
  CostTable costs_;
  Frontier frontier_;
  Evaluation baseline_;
  Evaluation fastest_;
};

// A plan for one deadline alone, without the frontier: for graphs that are too large to wait for
// it. Takes the time that it may, also where a shorter iteration would take less energy.
Result<PipelinePlan> PlanOnce(const Problem& problem, Seconds deadline,
                              const ClockChangeRules& rules = {});

// What the plan saves against the highest clock everywhere, which waits for a straggler, too: 0.15
// is 15 %.
double Saving(const PipelinePlan& plan, const Evaluation& baseline, const Problem& problem);

}  // namespace zeus::pipeline
