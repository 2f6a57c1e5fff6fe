#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "zeus/optimizer/pipeline/frontier/activity_network.h"
#include "zeus/optimizer/pipeline/frontier/growing_cut.h"

namespace zeus::pipeline {

// The maximum flow of the sweep. Flow is sent from the source to the sink along the tree of ways by
// which the nodes inside the cut were reached. Where a way becomes full, the node behind it is an
// orphan, and the tree is mended: a search goes backwards from the orphan to the nearest node that
// the source still reaches. The whole subtree below the orphan comes along untouched. A search that
// finds nothing has seen only nodes that the source does not reach any more. They leave the cut,
// which has to be done anyway: so no work is lost.
class CutTree {
 public:
  // Both must outlive it.
  CutTree(ActivityNetwork& network, GrowingCut& cut) : network_(network), cut_(cut) {}

  // Sends flow until the sink leaves the cut, and returns how much; nullopt when there is no limit.
  std::optional<Slope> SendAll();

 private:
  // Sends as much flow along path_ as fits; nodes behind ways that became full become orphans.
  std::optional<Slope> Send();
  void FindPath();
  void Mend();
  // Searches backwards from an orphan for a node that the source reaches. Returns false, with the
  // visited nodes in visits_, if there is none.
  bool Reattach(int orphan);
  bool HangsOnSource(int node);
  void Attach(std::size_t seen, Incidence back);
  void RemoveVisited();
  void Rebuild();
  // Marks of the current search: nodes that do not hang on the source, and among them those that
  // the search has visited.
  std::uint32_t adrift() const { return 2 * search_; }
  std::uint32_t visited() const { return 2 * search_ + 1; }

  ActivityNetwork& network_;
  GrowingCut& cut_;
  std::vector<int> path_{};     // Ways of the tree from the sink back to the source.
  std::vector<int> orphans_{};  // Nodes to be mended.
  // A node that the current search has visited, with the way and the visit that led to it.
  struct Visit {
    std::int32_t node = 0;
    std::int32_t way = 0;
    std::uint32_t next = 0;
  };
  std::vector<Visit> visits_{};
  std::vector<int> boundary_{};  // Ways from visited nodes to nodes not visited at that time.
  std::uint32_t mending_ = 0;    // Number of the current mending, with which nodes are marked.
  std::uint32_t search_ = 0;     // Number of the current search, with which nodes are marked.
  std::size_t short_path_ = 0;   // Length of the path when the tree was last rebuilt.
};

// A walk along the frontier from its slowest point towards the fastest (docs/pipeline.md, decision
// 24). It is the parametric minimum cut of Fulkerson and Kelley (1961): the cheapest set of
// computations to shorten by a tick is a minimum cut of the tight arcs, whose capacities are the
// slopes of the costs, and the value of the maximum flow is what the next tick costs. Here the
// flow, the times and the cut persist from one point to the next, and time jumps from event to
// event: GrowingCut moves the times, CutTree augments the flow when the sink is reached. Between
// steps the flow and the times satisfy all conditions of an optimum, which tests check. Internal to
// the solver.
class FrontierSweep {
 public:
  // The costs must outlive it.
  FrontierSweep(const Problem& problem, const CostTable& costs);

  FrontierSweep(const FrontierSweep&) = delete;
  FrontierSweep& operator=(const FrontierSweep&) = delete;

  // Lets time fall to the next event, or to `until` if that comes first. Returns false at the end:
  // when nothing can get faster, or when `until` is reached.
  bool Step(Ticks until);

  Ticks time() const { return cut_.time(); }
  // The energy paid since the start, in slope units.
  double cost() const { return cost_; }
  // The energy that the next tick costs, in slope units.
  Slope marginal_cost() const { return flow_; }

  const ActivityNetwork& network() const { return network_; }
  // Brings the durations in network() up to the present time.
  void BringUpToNow() { cut_.BringAllUpToNow(); }
  // All changes of durations that are finished. The caller moves them out at the end.
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
