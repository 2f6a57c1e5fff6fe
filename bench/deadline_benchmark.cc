// Measures the cost of solving one deadline without the frontier (docs/pipeline.md).
#include <benchmark/benchmark.h>

#include "zeus/optimizer/pipeline/deadline_solver.h"
#include "zeus/optimizer/pipeline/testing/random_problem.h"

namespace zeus::pipeline {
namespace {

// The arguments are stages, microbatches, and the slowdown against the fastest iteration in
// percent.
void OneDeadline(benchmark::State& state) {
  const int stages = static_cast<int>(state.range(0));
  const int microbatches = static_cast<int>(state.range(1));
  const auto schedule = MakeSchedule("1f1b", {.stages = stages, .microbatches = microbatches});
  const auto problem = MakeProblem(SyntheticProfile(stages, 0.02), schedule.value());
  const auto costs = MakeCosts(problem.value(), CostKind::kHull);
  Ticks fastest = 0;
  std::vector<Ticks> ends(problem.value().computations.size());
  for (const int i : problem.value().graph.topological_order()) {
    Ticks& end = ends[static_cast<std::size_t>(i)];
    for (const int before : problem.value().graph.Predecessors(i))
      end = std::max(end, ends[static_cast<std::size_t>(before)]);
    const int kind = problem.value().computations[static_cast<std::size_t>(i)].kind;
    end += costs.value().costs[static_cast<std::size_t>(kind)].shortest();
    fastest = std::max(fastest, end);
  }
  const Ticks deadline = fastest + fastest * state.range(2) / 100;
  for (auto step : state) {
    const auto solution = SolveDeadline(problem.value(), costs.value(), deadline);
    if (!solution.ok()) state.SkipWithError(solution.error().message.c_str());
    benchmark::DoNotOptimize(solution);
  }
  state.SetComplexityN(problem.value().graph.size());
}

BENCHMARK(OneDeadline)
    ->ArgNames({"stages", "microbatches", "slack"})
    ->ArgsProduct({{8}, {12, 128}, {0, 5, 20}})
    ->ArgsProduct({{32}, {512}, {0, 5, 20}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace zeus::pipeline
