#pragma once

#include <cstddef>
#include <optional>

#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/frontier.h"
#include "zeus/optimizer/pipeline/frontier_solver.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// Three solvers find the least energy of an iteration, and the size of its graph decides which of
// them is worth its time. The command line, the job server and Python all choose here, so that they
// give the same answer to the same question.
enum class Solver {
  kWholeFrontier,   // Every deadline at once, exactly: the best for graphs that are not large.
  kPeriodic,        // The frontier from pipelines of fewer microbatches, checked at half of them.
  kSingleDeadline,  // One deadline alone, without a frontier.
};

// Returns a text to be displayed: "the whole frontier", "this deadline alone", …
const char* SolverText(Solver solver);

// The answers that the caller will need.
enum class Demand {
  kFrontier,       // The frontier, or plans for several deadlines.
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

}  // namespace zeus::pipeline
