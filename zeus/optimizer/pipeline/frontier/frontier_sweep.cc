#include "zeus/optimizer/pipeline/frontier/frontier_sweep.h"

namespace zeus::pipeline {

FrontierSweep::FrontierSweep(const Problem& problem, const CostTable& costs)
    : network_(problem, costs), cut_(network_, changes_), tree_(network_, cut_) {}

bool FrontierSweep::Step(Ticks until) {
  if (cut_.ReachesSink()) {
    const std::optional<Slope> sent = tree_.SendAll();
    if (!sent) return false;
    flow_ += *sent;
    return true;
  }
  const Ticks before = cut_.time();
  const Ticks next = cut_.NextTime(until);
  cost_ += static_cast<double>(flow_) * static_cast<double>(before - next);
  if (next == until) {
    cut_.FallTo(until);
    return false;
  }
  cut_.PassEvent();
  return true;
}

}  // namespace zeus::pipeline
