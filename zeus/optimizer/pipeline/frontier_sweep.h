#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/frontier.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// A capacity far above any sum of slopes, which stays below 2^60 (see CostTable).
inline constexpr Slope kUnlimited = Slope{1} << 62;

// Arcs are numbered. A *way* is an arc together with a direction in which it is travelled: twice
// the arc's number along the arc, and one more against it.
constexpr int ArcNumber(int way) { return way >> 1; }
constexpr int Opposite(int way) { return way ^ 1; }

// An arc with its flow, kept as residual capacities, and with its duration.
struct NetworkArc {
  std::array<Slope, 2> residual{kUnlimited, 0};  // Capacity left along the arc, and against it.
  Ticks duration = 0;                            // While it changes: its value before the change.
  std::array<std::int32_t, 2> ends{};

  int From(int way) const { return ends[static_cast<std::size_t>(way & 1)]; }
  int To(int way) const { return ends[static_cast<std::size_t>(~way & 1)]; }
  Slope Residual(int way) const { return residual[static_cast<std::size_t>(way & 1)]; }
  void Push(int way, Slope amount) {
    residual[static_cast<std::size_t>(way & 1)] -= amount;
    residual[static_cast<std::size_t>(~way & 1)] += amount;
  }
};

// The parent of a node is the way by which the source reaches it, or one of these.
inline constexpr int kOutside = -1;  // The node is not inside the cut.
inline constexpr int kOrphan = -2;   // The way to the node became full; see CutTree.
inline constexpr int kRoot = -3;     // The node is the source.

// A point in time: the begin or the end of a computation, or the source or the sink.
struct NetworkNode {
  // The time of the node is `anchor` inside the cut and `anchor` plus the sweep's time outside. So
  // all nodes outside move together without being touched.
  Ticks anchor = 0;
  std::int32_t parent = kOutside;
  std::int32_t parent_node = 0;  // The node from which that way leads here.
  std::int32_t first = 0;        // Range of its entries in ActivityNetwork::incidences.
  std::int32_t end = 0;
  // Marks of CutTree's searches. They are kept here because they are read with the rest.
  std::uint32_t rooted = 0;
  std::uint32_t mark = 0;

  bool inside() const { return parent != kOutside; }
  void Hang(int way, int from) {
    parent = way;
    parent_node = from;
  }
};

// An allocator that aligns arrays to cache lines, so that neighbours share one.
template <typename T>
struct CacheAligned {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  CacheAligned() = default;
  template <typename U>
  explicit CacheAligned(const CacheAligned<U>& /*other*/) {}
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kLine));
  }
  void deallocate(T* memory, std::size_t /*count*/) { ::operator delete(memory, kLine); }
  bool operator==(const CacheAligned&) const = default;
};

// An arc as seen from one of its nodes.
struct Incidence {
  std::int32_t way = 0;  // Leads from the node that has this incidence to the neighbour.
  std::int32_t neighbour = 0;
};

// The state of an arc that only computations have.
struct Activity {
  const ConvexCost* cost = nullptr;
  Slope lower = 0;              // Lower bound of the flow: energy that one more tick would save.
  Ticks since = 0;              // The sweep's time when the duration began to change.
  std::int32_t breakpoint = 0;  // Index of the last of cost->times that is not above the duration.
  std::int32_t direction = 0;  // While time falls, the duration grows (1), shrinks (-1), rests (0).
  std::int32_t computation = 0;
};

// The graph of a problem as a flow network. A computation is an arc from its begin to its end, a
// dependency is an arc without duration, and there is one source and one sink. Nodes and arcs are
// in the order of time, so that neighbours are near in memory, and both ends of a computation share
// a cache line. The costs must outlive it. Internal to the solver.
struct ActivityNetwork {
  // Starts with all computations at their longest, every node as early as possible, and no flow.
  ActivityNetwork(const Problem& problem, const CostTable& costs);

  int source() const { return 0; }
  int sink() const { return 1; }
  bool IsActivity(int arc) const { return static_cast<std::size_t>(arc) < activities.size(); }

  NetworkNode& node(int number) { return nodes[static_cast<std::size_t>(number)]; }
  const NetworkNode& node(int number) const { return nodes[static_cast<std::size_t>(number)]; }
  NetworkArc& arc(int number) { return arcs[static_cast<std::size_t>(number)]; }
  const NetworkArc& arc(int number) const { return arcs[static_cast<std::size_t>(number)]; }

  std::span<const Incidence> Incidences(int number) const {
    const NetworkNode& at = node(number);
    return {incidences.data() + at.first, incidences.data() + at.end};
  }

  // Whether flow can be sent along a way between two nodes inside the cut, which have these times:
  // the arc must be tight (no slack) and have capacity left.
  bool IsOpen(int way, Ticks from, Ticks to) const {
    if (!IsActivity(ArcNumber(way))) {
      // Arcs without duration are mostly decided without reading the arc itself.
      if (from != to) return false;
      if ((way & 1) == 0) return true;
    }
    const NetworkArc& along = arc(ArcNumber(way));
    return along.Residual(way) > 0 && ((way & 1) == 0 ? to - from : from - to) == along.duration;
  }

  // Prefetches the data that a visit of the node will read: without it, searches spend most of
  // their time waiting for memory.
  void Prefetch(int number) const {
    __builtin_prefetch(incidences.data() + node(number).first);
    __builtin_prefetch(arcs.data() + std::max(number / 2 - 1, 0));
  }

  // Sets the bounds of an activity's flow to those of its duration; the flow itself stays.
  void SetBounds(int activity);

  Ticks longest = 0;  // Time of the whole iteration at the start.
  std::vector<NetworkNode, CacheAligned<NetworkNode>> nodes{};
  std::vector<NetworkArc> arcs{};  // The arcs of computations come first.
  std::vector<Activity> activities{};
  std::vector<Incidence> incidences{};
};

// The future events of arcs, latest time first, since time falls. An arc has at most one event.
// Cancelling is lazy: an event is void when the stamp of its arc has moved on.
class EventQueue {
 public:
  struct Event {
    Ticks time = 0;
    std::int32_t arc = 0;
    std::uint32_t stamp = 0;
  };

  explicit EventQueue(std::size_t arcs) : stamps_(arcs, 0) {}

  bool Waits(int arc) const { return (stamps_[static_cast<std::size_t>(arc)] & 1) != 0; }

  // The arc must not have an event.
  void Schedule(int arc, Ticks time) {
    const std::uint32_t stamp = ++stamps_[static_cast<std::size_t>(arc)];
    heap_.push_back({time, arc, stamp});
    std::ranges::push_heap(heap_, {}, &Event::time);
  }

  void Cancel(int arc) { ++stamps_[static_cast<std::size_t>(arc)]; }

  // Returns the next event, which stays in the queue until it is cancelled; nullptr if there is
  // none.
  const Event* Next() {
    // Cancelled events are removed when they come up, or all at once when there are many.
    if (heap_.size() > 2 * stamps_.size()) {
      std::erase_if(heap_, [&](const Event& event) { return IsPast(event); });
      std::ranges::make_heap(heap_, {}, &Event::time);
    }
    while (!heap_.empty() && IsPast(heap_.front())) {
      std::ranges::pop_heap(heap_, {}, &Event::time);
      heap_.pop_back();
    }
    return heap_.empty() ? nullptr : &heap_.front();
  }

 private:
  bool IsPast(const Event& event) const {
    return stamps_[static_cast<std::size_t>(event.arc)] != event.stamp;
  }

  std::vector<Event> heap_{};          // A heap with the latest time at the front.
  std::vector<std::uint32_t> stamps_;  // One for each arc; odd while the arc has an event.
};

// The cut whose computations change while time falls. Inside are all nodes that the source reaches
// along tight arcs with capacity left. As time falls, the nodes outside move towards the source:
// computations that lead out of the cut shrink, those that lead back in grow. The inside only grows
// until the sink joins it, and every change of it is an event whose time is known beforehand.
class GrowingCut {
 public:
  // Both must outlive it.
  GrowingCut(ActivityNetwork& network, std::vector<DurationChange>& changes);

  Ticks time() const { return time_; }
  bool ReachesSink() const { return network_.node(network_.sink()).inside(); }

  // Returns the time of the next event, or `bound` if that is later (and so comes first).
  Ticks NextTime(Ticks bound);
  // Lets time fall to the next event, handles it and grows the cut. There must be an event.
  void PassEvent();
  // Lets time fall to `time`, which must not be beyond the next event.
  void FallTo(Ticks time) { time_ = time; }

  // Removes nodes that the source no longer reaches. First call Detach() for each of their ways to
  // other nodes, then Remove() for the nodes themselves, and WatchRemoved() after all of them: it
  // schedules the events that may bring them back.
  void Detach(int way, const NetworkNode& to) {
    if (to.inside()) {
      boundary_.push_back(way);
    } else if (events_.Waits(ArcNumber(way))) {
      BringUpToNow(ArcNumber(way));
    }
  }
  void Remove(NetworkNode& node) const {
    node.parent = kOutside;
    node.anchor -= time_;
  }
  void WatchRemoved();

  // Brings the durations of all computations that change up to the present time.
  void BringAllUpToNow();

 private:
  // Puts a node into the cut, reached by `way` from the node `from`.
  void Join(int node, int way, int from);
  // Inspects the ways of the nodes that have joined, until no more nodes join.
  void Grow();
  void Inspect(int way, int from, int to);
  void InspectForward(int way, int from, int to);
  void InspectBackward(int way, int from, int to);
  // Lets the duration of an activity change from now on, up to its next breakpoint.
  void Move(int activity, int direction);
  // Cancels the event of an arc; if its duration was changing, brings it up to the present time.
  void BringUpToNow(int arc);

  ActivityNetwork& network_;
  std::vector<DurationChange>& changes_;
  EventQueue events_;
  Ticks time_ = 0;
  std::vector<int> joined_{};    // Nodes inside whose ways were not inspected yet.
  std::vector<int> boundary_{};  // Ways from removed nodes to nodes that were still inside.
};

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
