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

// Far above any sum of slopes, which stays below 2^60 (see CostTable).
inline constexpr Slope kUnlimited = Slope{1} << 62;

// An arc is named by a number; a way along it by twice that number, plus one against its direction.
constexpr int ArcOf(int way) { return way >> 1; }
constexpr int Opposite(int way) { return way ^ 1; }

struct NetworkArc {
  std::array<Slope, 2> residual{kUnlimited, 0};  // How much more may flow along, and be taken back.
  Ticks duration = 0;                            // While it moves: what it was when that began.
  std::array<std::int32_t, 2> ends{};

  int From(int way) const { return ends[static_cast<std::size_t>(way & 1)]; }
  int To(int way) const { return ends[static_cast<std::size_t>(~way & 1)]; }
  Slope Residual(int way) const { return residual[static_cast<std::size_t>(way & 1)]; }
  void Push(int way, Slope amount) {
    residual[static_cast<std::size_t>(way & 1)] -= amount;
    residual[static_cast<std::size_t>(~way & 1)] += amount;
  }
};

// What a node's parent may be other than the way that leads to it.
inline constexpr int kOutside = -1;  // Not inside the cut.
inline constexpr int kOrphan = -2;   // Its way is full; see CutTree.
inline constexpr int kRoot = -3;     // The source.

struct NetworkNode {
  // Its time: `anchor` inside the cut, `anchor` plus the sweep's time outside. So those outside
  // move all together without being touched.
  Ticks anchor = 0;
  std::int32_t parent = kOutside;
  std::int32_t parent_node = 0;  // Where that way comes from.
  std::int32_t first = 0;        // Of its incidences.
  std::int32_t end = 0;
  // What CutTree's searches know of it, here because it is read with the rest.
  std::uint32_t rooted = 0;
  std::uint32_t mark = 0;

  bool inside() const { return parent != kOutside; }
  void Hang(int way, int from) {
    parent = way;
    parent_node = from;
  }
};

// Keeps things that are read together in one cache line.
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

struct Incidence {
  std::int32_t way = 0;  // From the node that has it.
  std::int32_t neighbour = 0;
};

// What only arcs of computations have.
struct Activity {
  const ConvexCost* cost = nullptr;
  Slope lower = 0;              // The least flow: what a tick more would save.
  Ticks since = 0;              // When it began to move.
  std::int32_t breakpoint = 0;  // The last of `cost` that is not above the duration.
  std::int32_t direction = 0;   // 1: it grows while time falls; -1: it shrinks; 0: it rests.
  std::int32_t computation = 0;
};

// The graph of a problem with computations as arcs between their begin and their end, waiting as
// arcs without duration, and one source and one sink. Nodes and arcs are in the order of time, so
// that neighbours are near in memory; both ends of a computation share a cache line. Refers to the
// costs. For the solver and its parts alone.
struct ActivityNetwork {
  // All computations at their longest, each node as early as can be, no flow.
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

  // Whether something can flow along a way between nodes inside at these times.
  bool IsOpen(int way, Ticks from, Ticks to) const {
    if (!IsActivity(ArcOf(way))) {
      // Known without a look at the arc, more often than not.
      if (from != to) return false;
      if ((way & 1) == 0) return true;
    }
    const NetworkArc& along = arc(ArcOf(way));
    return along.Residual(way) > 0 && ((way & 1) == 0 ? to - from : from - to) == along.duration;
  }

  // Asks the processor for what the visit of a node will need: searches would otherwise wait for
  // memory most of the time.
  void Prefetch(int number) const {
    __builtin_prefetch(incidences.data() + node(number).first);
    __builtin_prefetch(arcs.data() + std::max(number / 2 - 1, 0));
  }

  // Gives an activity the bounds of its duration; its flow stays.
  void SetBounds(int activity);

  Ticks longest = 0;  // Of the whole, at the start.
  std::vector<NetworkNode, CacheAligned<NetworkNode>> nodes{};
  std::vector<NetworkArc> arcs{};  // Those of computations come first.
  std::vector<Activity> activities{};
  std::vector<Incidence> incidences{};
};

}  // namespace zeus::pipeline
