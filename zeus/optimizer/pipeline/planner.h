#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/frontier.h"
#include "zeus/optimizer/pipeline/frontier_solver.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// Three solvers find the least energy of an iteration, and the size of its graph and the
// caller's Demand decide which of them runs. The command line, the job server and Python all choose
// here, so that they give the same answer to the same question.
enum class Solver {
  kWholeFrontier,   // Every deadline at once, exactly: the best for graphs that are not large.
  kPeriodic,        // The frontier from pipelines of fewer microbatches, checked at half of them.
  kSingleDeadline,  // One deadline alone, without a frontier.
};

// Returns a text to be displayed: "the whole frontier", "this deadline alone", …
const char* SolverText(Solver solver);

// The answers that the caller will need.
enum class Demand {
  kFrontier,       // The frontier, or plans for several deadlines; kPeriodic for large graphs.
  kOneDeadline,    // One plan; the frontier only where it costs little.
  kExactFrontier,  // The whole frontier, however long it takes.
};

// Graphs with more computations are large: their whole frontier takes minutes.
inline constexpr std::size_t kLargeGraph = 8192;

struct SolverRules {
  Demand demand = Demand::kFrontier;
  std::size_t large_graph = kLargeGraph;
  SolveOptions solve{};
};

struct ChosenFrontier {
  Solver solver = Solver::kWholeFrontier;
  // nullopt with kSingleDeadline. Only the frontier of kWholeFrontier has durations.
  std::optional<Frontier> frontier{};
};

// Solves the problem with the solver that the rules choose. Where the periodic solver does not
// apply, because the schedule is not a known one or its check fails, the whole frontier is solved.
Result<ChosenFrontier> SolveByChoice(const Problem& problem, const CostTable& costs,
                                     const SolverRules& rules);

struct DeadlineSolution;

// The costs of changing a clock. By default, a plan may change it before every instruction.
struct ClockChangeRules {
  int least_instructions = 1;  // Least number of instructions between two changes on a stage.
  Seconds latency{0};          // Delay of the first instruction after a change.
};

// Plans for one pipeline: it holds the frontier and makes plans for deadlines from it. A Planner is
// expensive to make; plans are cheap, except for large graphs, where each plan is a solve of its
// own. Plan() may be called from many threads.
class Planner {
 public:
  // Solves the problem on the hull of its measured points, with the solver that the rules choose.
  static Result<std::unique_ptr<Planner>> Make(Problem problem, const SolverRules& rules = {});

  const Problem& problem() const { return problem_; }
  const CostTable& costs() const { return costs_; }
  // How the pipeline was solved.
  Solver solver() const { return solver_; }
  // False with Solver::kSingleDeadline; frontier() must not be called then.
  bool has_frontier() const { return frontier_.has_value(); }
  const Frontier& frontier() const { return frontier_.value(); }

  // The iteration with all computations at their highest clock.
  const Evaluation& baseline() const { return baseline_; }
  // The fastest iteration in measured times; no plan is faster.
  Seconds fastest_time() const { return fastest_.time; }

  // Returns the plan of least energy that the search finds within `deadline`; PipelinePlan::gap()
  // says how far it may be from the optimum. Returns kInvalidArgument, naming fastest_time(), when
  // no plan meets the deadline. A deadline beyond the frontier's slowest point gets that point's
  // plan. Without a frontier, the plan uses the whole deadline, also where a shorter iteration
  // would take less energy.
  Result<PipelinePlan> Plan(Seconds deadline, const ClockChangeRules& rules = {}) const;

  // Plans as Plan() does for a job whose iterations take `pace` because of a straggler; the energy
  // includes waiting for it.
  Result<PipelinePlan> PlanForPace(Seconds pace, const ClockChangeRules& rules = {}) const;

 private:
  Planner(Problem problem, CostTable costs, ChosenFrontier chosen);

  Result<PipelinePlan> PlanTowards(Ticks target, Seconds deadline, std::optional<Seconds> pace,
                                   const ClockChangeRules& rules) const;
  // Returns the least energy within a time if durations need not be those of measured points.
  Result<DeadlineSolution> Relax(Ticks ticks) const;

  Problem problem_;
  CostTable costs_;
  Solver solver_;
  std::optional<Frontier> frontier_;
  Evaluation baseline_;
  Evaluation fastest_;
};

// Returns the share of the baseline's energy that the plan saves: 0.15 is 15 %. If the plan waits
// for a straggler, so does the baseline.
double Saving(const PipelinePlan& plan, const Evaluation& baseline, const Problem& problem);

// Data-parallel replicas of one pipeline, which wait for each other at the end of each iteration.
struct ReplicaScenario {
  int replicas = 16;
  int stragglers = 1;     // Number of slow replicas.
  double slowdown = 1.2;  // Iteration time of a straggler relative to the baseline.
};

// Energies of one iteration of all replicas together.
struct ReplicaOutcome {
  Seconds pace{0};            // Iteration time of the whole job.
  Joules baseline_energy{};   // Energy with all at the highest clock, waiting for the stragglers.
  Joules planned_energy{};    // Energy with plans for the pace in all but the stragglers.
  Joules intrinsic_energy{};  // Energy with plans that ignore the stragglers.
  double saving() const { return 1 - planned_energy / baseline_energy; }
  double intrinsic_saving() const { return 1 - intrinsic_energy / baseline_energy; }
};

// Computes one iteration of the whole job. Stragglers are slow for a reason that no clock can
// change (heat, input): they take the baseline's power for their whole iteration.
Result<ReplicaOutcome> PlanReplicas(const Planner& planner, const ReplicaScenario& scenario);

}  // namespace zeus::pipeline
