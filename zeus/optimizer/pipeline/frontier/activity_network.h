#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

#include "zeus/optimizer/pipeline/convex_cost.h"
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

}  // namespace zeus::pipeline
