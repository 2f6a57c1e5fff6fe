#include "zeus/optimizer/pipeline/deadline/price_update.h"

#include <algorithm>

namespace zeus::pipeline::internal {
namespace {

// The last few nodes would make the search visit nearly all others; they wait for the next one.
constexpr double kShareToReach = 0.7;
// Longer arcs count as this long, which is still a valid bound and keeps the buckets few.
constexpr Ticks kLongestArc = 4000;

}  // namespace

PriceUpdate::PriceUpdate(DeadlineNetwork& network)
    : network_(network), marks_(network.nodes.size()) {}

void PriceUpdate::Insert(int at, int distance) {
  if (static_cast<std::size_t>(distance) >= buckets_.size())
    buckets_.resize(
        std::max<std::size_t>(2 * buckets_.size(), static_cast<std::size_t>(distance) + 1), -1);
  farthest_ = std::max(farthest_, distance);
  std::int32_t& first = buckets_[static_cast<std::size_t>(distance)];
  mark(at) = {.distance = distance, .next = first, .run = run_, .visit = Visit::kWaiting};
  if (first >= 0) mark(first).previous = at;
  first = at;
}

void PriceUpdate::Remove(int at) {
  const Mark& removed = mark(at);
  if (removed.previous >= 0) {
    mark(removed.previous).next = removed.next;
  } else {
    buckets_[static_cast<std::size_t>(removed.distance)] = removed.next;
  }
  if (removed.next >= 0) mark(removed.next).previous = removed.previous;
}

void PriceUpdate::Reach(int at, int distance, Ticks reduced_cost) {
  const Mark& known = mark(at);
  const bool seen = known.run == run_;
  if (seen && known.visit == Visit::kDone) return;
  if (reduced_cost >= 0)
    distance += static_cast<int>(std::min(reduced_cost / tolerance_ + 1, kLongestArc));
  if (seen && distance >= known.distance) return;
  if (seen) Remove(at);
  Insert(at, distance);
}

// All residual arcs that lead to the node.
void PriceUpdate::Scan(int at, int distance) {
  const DeadlineNetwork& net = network_;
  const int i = at / 2;
  const FlowActivity& activity = net.activity(i);
  const Ticks time = net.node(at).time;
  if (at % 2 == 0) {
    if (activity.flow > 0) Reach(at + 1, distance, activity.longest + time - net.node(at + 1).time);
    for (const IncomingWait& wait : net.WaitsFor(i))
      Reach(wait.from, distance, time - net.node(wait.from).time);
    return;
  }
  Reach(at - 1, distance, time - activity.shortest - net.node(at - 1).time);
  const auto [first, last] = net.WaitsFrom(i);
  for (int wait = first; wait < last; ++wait) {
    const int to = net.WaitTo(wait);
    if (net.WaitFlow(wait) > 0) Reach(to, distance, time - net.node(to).time);
  }
}

int PriceUpdate::Search(std::int64_t wanted) {
  scanned_.clear();
  for (int distance = 0; distance <= farthest_; ++distance) {
    for (int at = 0; (at = buckets_[static_cast<std::size_t>(distance)]) >= 0;) {
      Remove(at);
      mark(at).visit = Visit::kDone;
      scanned_.push_back(at);
      if (network_.node(at).excess > 0 && --wanted <= 0) return distance;
      Scan(at, distance);
    }
  }
  return farthest_;
}

void PriceUpdate::Run(std::span<const int> in_excess, std::vector<int>& in_deficit,
                      Ticks tolerance) {
  tolerance_ = tolerance;
  ++run_;
  farthest_ = 0;
  std::erase_if(in_deficit, [&](int at) { return network_.node(at).excess >= 0; });
  const auto waiting =
      std::ranges::count_if(in_excess, [&](int at) { return network_.node(at).excess > 0; });
  if (waiting == 0) return;
  for (const int at : in_deficit) Insert(at, 0);

  const auto spared = static_cast<std::int64_t>((1 - kShareToReach) * static_cast<double>(waiting));
  const int reached = Search(waiting - spared);
  // All nodes later by their distance; those that were not reached by `reached`. Only differences
  // matter, so those stay where they are.
  for (const int at : scanned_) network_.node(at).time -= tolerance * (reached - mark(at).distance);
  std::fill_n(buckets_.begin(),
              std::min<std::size_t>(buckets_.size(), static_cast<std::size_t>(farthest_) + 1), -1);
}

}  // namespace zeus::pipeline::internal
