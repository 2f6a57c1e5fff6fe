#include "zeus/optimizer/pipeline/deadline_solver.h"

#include <fmt/format.h>

#include <algorithm>

#include "zeus/optimizer/pipeline/frontier_solver.h"

namespace zeus::pipeline {

Result<DeadlineSolution> SolveDeadline(const Problem& problem, const CostTable& costs,
                                       Ticks deadline) {
  const Ticks fastest = FastestTicks(problem, costs);
  if (deadline < fastest)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("no iteration takes {:.6g} s: the fastest takes {:.6g} s",
                             static_cast<double>(deadline) * costs.tick.count(),
                             static_cast<double>(fastest) * costs.tick.count())};
  SolveOptions options{.until = static_cast<double>(deadline) * costs.tick};
  ZEUS_TRY(const Frontier frontier, SolveFrontier(problem, costs, options));
  const Ticks time = std::min(deadline, frontier.slowest().ticks);
  return DeadlineSolution{time, frontier.EnergyAt(time), frontier.DurationsAt(time)};
}

}  // namespace zeus::pipeline
