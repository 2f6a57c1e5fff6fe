#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "zeus/optimizer/pipeline/frontier/activity_network.h"
#include "zeus/optimizer/pipeline/frontier/growing_cut.h"

namespace zeus::pipeline {

// Sends flow from the source to the sink along the tree of ways by which the nodes inside the cut
// were reached, and mends the tree where a way became full: from the node behind it backwards to
// the nearest one that the source still reaches. All that hangs below comes along untouched. A
// search that finds nothing has seen only nodes that the source does not reach any more, and they
// leave the cut: so no work is lost.
class CutTree {
 public:
  // Both must outlive it.
  CutTree(ActivityNetwork& network, GrowingCut& cut) : network_(network), cut_(cut) {}

  // As much as can flow until the sink leaves the cut; nullopt when that is without limit.
  std::optional<Slope> SendAll();

 private:
  std::optional<Slope> Send();
  void FindPath();
  void Mend();
  bool Reattach(int orphan);
  bool HangsOnSource(int node);
  void Attach(std::size_t seen, Incidence back);
  void LoseVisited();
  void Renew();
  // Marks of the current search: nodes that do not hang on the source, and among them those that
  // it has been to.
  std::uint32_t adrift() const { return 2 * search_; }
  std::uint32_t visited() const { return 2 * search_ + 1; }

  ActivityNetwork& network_;
  GrowingCut& cut_;
  std::vector<int> path_{};     // Ways, from the sink to the source.
  std::vector<int> orphans_{};  // To be mended.
  // What the current search has been to: the node, and the way and the place here by which it came.
  struct Visit {
    std::int32_t node = 0;
    std::int32_t way = 0;
    std::uint32_t next = 0;
  };
  std::vector<Visit> visits_{};
  std::vector<int> edge_{};  // Ways from there to what it has not been to, at that time.
  std::uint32_t mending_ = 0;
  std::uint32_t search_ = 0;
  std::size_t short_path_ = 0;  // When the tree was last made anew.
};

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
