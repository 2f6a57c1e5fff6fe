#pragma once

#include <memory>
#include <optional>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/evaluation.h"
#include "zeus/optimizer/pipeline/frontier.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/problem.h"
#include "zeus/optimizer/pipeline/solver_choice.h"

namespace zeus::pipeline {

struct DeadlineSolution;

// What changing the clock costs. Without these a plan may change it before every instruction.
struct ClockChangeRules {
  int least_instructions = 1;  // Between two changes on a stage.
  Seconds latency{0};          // An instruction takes this much longer after a change.
};

// Plans one pipeline: holds its frontier, makes plans for deadlines. Expensive to make, cheap to
// ask: of a large graph each plan takes a solve of its own. Plan() may be called from many threads.
class Planner {
 public:
  // Solves the pipeline on its measured points (hull), with the solver that the rules choose.
  static Result<std::unique_ptr<Planner>> Make(Problem problem, const SolverRules& rules = {});

  const Problem& problem() const { return problem_; }
  const CostTable& costs() const { return costs_; }
  // How the pipeline was solved.
  Solver solver() const { return solver_; }
  // There is none with Solver::kSingleDeadline.
  bool has_frontier() const { return frontier_.has_value(); }
  const Frontier& frontier() const { return frontier_.value(); }

  // All computations at their highest clock.
  const Evaluation& baseline() const { return baseline_; }
  // In true times. No plan is faster.
  Seconds fastest_time() const { return fastest_.time; }

  // The discrete plan of least energy that we find within `deadline`, in true times.
  // kInvalidArgument, naming fastest_time(), when there is none. A deadline beyond the frontier's
  // slowest point gets that point's plan; without a frontier the plan takes the time that it may,
  // also where a shorter iteration would take less energy.
  Result<PipelinePlan> Plan(Seconds deadline, const ClockChangeRules& rules = {}) const;

  // As Plan(), in a job whose iterations take `pace` because of somebody else: the energy includes
  // waiting for it.
  Result<PipelinePlan> PlanForPace(Seconds pace, const ClockChangeRules& rules = {}) const;

 private:
  Planner(Problem problem, CostTable costs, ChosenFrontier chosen);

  Result<PipelinePlan> PlanTowards(Ticks target, Seconds deadline, std::optional<Seconds> pace,
                                   const ClockChangeRules& rules) const;
  // The least energy within a time, where durations need not be those of measured points.
  Result<DeadlineSolution> Relax(Ticks ticks) const;

  Problem problem_;
  CostTable costs_;
  Solver solver_;
  std::optional<Frontier> frontier_;
  Evaluation baseline_;
  Evaluation fastest_;
};

// What the plan saves against the highest clock everywhere, which waits for a straggler, too: 0.15
// is 15 %.
double Saving(const PipelinePlan& plan, const Evaluation& baseline, const Problem& problem);

}  // namespace zeus::pipeline
