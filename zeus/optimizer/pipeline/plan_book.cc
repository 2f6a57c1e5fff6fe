#include "zeus/optimizer/pipeline/plan_book.h"

#include <algorithm>
#include <utility>

namespace zeus::pipeline {

Result<PlanBook> PlanBook::Make(const Planner& planner, int plans, const ClockChangeRules& rules) {
  const Seconds fastest = planner.fastest_time();
  const Seconds slowest = std::max(planner.frontier().slowest().time, fastest);
  std::vector<Seconds> paces{std::max(planner.baseline().time, fastest)};
  for (int i = 0; i < plans; ++i)
    paces.push_back(fastest + (slowest - fastest) * (i / std::max(plans - 1.0, 1.0)));
  std::ranges::sort(paces);
  PlanBook book;
  for (const Seconds pace : paces) {
    Result<PipelinePlan> plan = planner.PlanForPace(pace, rules);
    // Rules may forbid the fastest ones.
    if (!plan.ok() && pace < paces.back()) continue;
    if (!plan.ok()) return std::move(plan).error();
    book.plans_.push_back(std::move(plan).value());
  }
  std::ranges::stable_sort(book.plans_, {}, &PipelinePlan::time);
  return book;
}

const PipelinePlan& PlanBook::ForPace(Seconds pace) const {
  const auto slower = std::ranges::upper_bound(plans_, pace, {}, &PipelinePlan::time);
  return slower == plans_.begin() ? *slower : *std::prev(slower);
}

}  // namespace zeus::pipeline
