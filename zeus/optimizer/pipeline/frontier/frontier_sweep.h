#pragma once

#include <vector>

#include "zeus/optimizer/pipeline/frontier/activity_network.h"
#include "zeus/optimizer/pipeline/frontier/cut_tree.h"
#include "zeus/optimizer/pipeline/frontier/growing_cut.h"

namespace zeus::pipeline {

// A walk along the frontier from its slowest point towards the fastest: docs/pipeline.md. Between
// steps the flow and the times satisfy all conditions of an optimum. For the solver and its tests.
class FrontierSweep {
 public:
  // The costs must outlive it.
  FrontierSweep(const Problem& problem, const CostTable& costs);

  FrontierSweep(const FrontierSweep&) = delete;
  FrontierSweep& operator=(const FrontierSweep&) = delete;

  // Lets time fall to the next event, or to `until` if that comes first. False at the end: nothing
  // can get faster, or `until` is reached.
  bool Step(Ticks until);

  Ticks time() const { return cut_.time(); }
  // What has been paid since the start, in the unit of slopes.
  double cost() const { return cost_; }
  // What the next tick costs.
  Slope marginal_cost() const { return flow_; }

  const ActivityNetwork& network() const { return network_; }
  // Brings the durations in network() up to the present.
  void Settle() { cut_.SettleAll(); }
  // What settled so far; to be taken at the end.
  std::vector<DurationChange>& changes() { return changes_; }

 private:
  ActivityNetwork network_;
  std::vector<DurationChange> changes_{};
  GrowingCut cut_;
  CutTree tree_;
  Slope flow_ = 0;
  double cost_ = 0;
};

}  // namespace zeus::pipeline
