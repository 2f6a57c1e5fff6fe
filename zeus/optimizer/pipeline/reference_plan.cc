#include "zeus/optimizer/pipeline/reference_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/optimizer/pipeline/evaluation.h"
#include "zeus/optimizer/pipeline/plan_search.h"

namespace zeus::pipeline {
namespace {

// Files hold whole megahertz.
bool IsSameClock(Hertz a, Hertz b) { return std::abs(a.ToMega() - b.ToMega()) < 0.5; }

Result<int> PointAt(const ComputationKind& kind, Hertz clock) {
  const auto found = std::ranges::find_if(kind.points, [clock](const OperatingPoint& point) {
    return IsSameClock(point.clock, clock);
  });
  if (found != kind.points.end()) return static_cast<int>(found - kind.points.begin());
  if (kind.points.size() == 1) return 0;  // Takes the same at every clock.
  return InvalidArgument(
      fmt::format("stage {}: {} was not measured at {} MHz: take the profile that the "
                  "schedule was made from",
                  kind.stage, Printable(kind.instruction), clock.ToMega()));
}

// What the stage's computations run at, in its order.
Status ChooseStage(const Problem& problem, int stage, const RankClocks& rank,
                   std::vector<int>& choice) {
  const std::vector<int>& order = problem.stage_order[static_cast<std::size_t>(stage)];
  if (rank.size() != order.size())
    return InvalidArgument(
        fmt::format("the schedule of stage {} has {} instructions and the pipeline {}: "
                    "give the microbatches it was made for",
                    stage, rank.size(), order.size()));
  Hertz clock{};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const ComputationKind& kind = problem.KindOf(order[i]);
    const auto at = static_cast<std::size_t>(order[i]);
    if (rank[i].first != kind.instruction)
      return InvalidArgument(
          fmt::format("instruction {} of stage {} is {} in the schedule and {} in the "
                      "pipeline",
                      i, stage, Quote(rank[i].first), Quote(kind.instruction)));
    if (rank[i].second > Hertz()) clock = rank[i].second;
    if (clock == Hertz()) continue;  // Nobody has set one: the highest.
    ZEUS_TRY(choice[at], PointAt(kind, clock));
  }
  return Ok();
}

}  // namespace

Result<PipelinePlan> EvaluateReference(const Problem& problem, const std::vector<RankClocks>& ranks,
                                       Seconds latency) {
  if (static_cast<int>(ranks.size()) != problem.stages)
    return InvalidArgument(
        fmt::format("the schedule has lists for {} stages and the pipeline has {}: they "
                    "must agree",
                    ranks.size(), problem.stages));
  std::vector<int> choice = HighestClockChoice(problem);
  for (int stage = 0; stage < problem.stages; ++stage)
    ZEUS_RETURN_IF_ERROR(
        ChooseStage(problem, stage, ranks[static_cast<std::size_t>(stage)], choice));
  return MakePlan(problem, choice, latency);
}

}  // namespace zeus::pipeline
