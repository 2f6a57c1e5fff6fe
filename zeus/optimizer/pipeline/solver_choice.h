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

// Text for people: "the whole frontier", "this deadline alone", …
const char* SolverText(Solver solver);

// Which of the answers the caller will ask for.
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
  // nullopt with kSingleDeadline. Only that of kWholeFrontier knows durations.
  std::optional<Frontier> frontier{};
};

// Solves the problem with the solver that the rules choose. A periodic frontier that cannot be had,
// because the schedule is not one of ours or the check fails, is solved whole instead.
Result<ChosenFrontier> SolveByChoice(const Problem& problem, const CostTable& costs,
                                     const SolverRules& rules);

}  // namespace zeus::pipeline
