#include "zeus/optimizer/pipeline/frontier/frontier_sweep.h"

#include <algorithm>

namespace zeus::pipeline {

std::optional<Slope> CutTree::SendAll() {
  // Mending leaves detours behind. When they have made the path about twice as long as it was, the
  // tree is rebuilt.
  constexpr std::size_t kDetour = 2;
  constexpr std::size_t kLeastPath = 64;
  Slope sum = 0;
  while (cut_.ReachesSink()) {
    FindPath();
    if (path_.size() > kDetour * short_path_ + kLeastPath) {
      Rebuild();
      FindPath();
      short_path_ = path_.size();
    }
    const std::optional<Slope> sent = Send();
    if (!sent) return std::nullopt;
    sum += *sent;
    Mend();
  }
  cut_.WatchRemoved();
  return sum;
}

void CutTree::FindPath() {
  path_.clear();
  for (int node = network_.sink(); node != network_.source();) {
    const NetworkNode& at = network_.node(node);
    path_.push_back(at.parent);
    node = at.parent_node;
  }
}

std::optional<Slope> CutTree::Send() {
  Slope amount = kUnlimited;
  for (const int way : path_) amount = std::min(amount, network_.arc(ArcNumber(way)).Residual(way));
  if (amount >= kUnlimited / 2) return std::nullopt;
  ++mending_;
  bool whole = true;  // Whether no way from the source to here is full.
  for (std::size_t i = path_.size(); i-- > 0;) {
    const int way = path_[i];
    NetworkArc& arc = network_.arc(ArcNumber(way));
    arc.Push(way, amount);
    NetworkNode& node = network_.node(arc.To(way));
    if (arc.Residual(way) == 0) {
      node.parent = kOrphan;
      orphans_.push_back(arc.To(way));
      whole = false;
    }
    if (whole) node.rooted = mending_;
  }
  return amount;
}

void CutTree::Mend() {
  network_.node(network_.source()).rooted = mending_;
  for (std::size_t i = 0; i < orphans_.size(); ++i)  // RemoveVisited() may append orphans.
    if (network_.node(orphans_[i]).parent == kOrphan && !Reattach(orphans_[i])) RemoveVisited();
  orphans_.clear();
}

bool CutTree::Reattach(int orphan) {
  ++search_;
  visits_.assign(1, {.node = orphan});
  boundary_.clear();
  network_.node(orphan).mark = visited();
  for (std::size_t i = 0; i < visits_.size(); ++i) {
    const int node = visits_[i].node;
    const Ticks time = network_.node(node).anchor;
    for (const Incidence& back : network_.Incidences(node)) {
      NetworkNode& other = network_.node(back.neighbour);
      if (other.mark == visited()) continue;
      const int way = Opposite(back.way);
      if (!other.inside() || !network_.IsOpen(way, other.anchor, time)) {
        boundary_.push_back(back.way);
        continue;
      }
      if (HangsOnSource(back.neighbour)) {
        Attach(i, back);
        return true;
      }
      other.mark = visited();
      visits_.push_back({back.neighbour, way, static_cast<std::uint32_t>(i)});
      network_.Prefetch(back.neighbour);
    }
  }
  return false;
}

// Takes the nodes that the last search visited out of the cut.
void CutTree::RemoveVisited() {
  for (const int way : boundary_) {
    const int neighbour = network_.arc(ArcNumber(way)).To(way);
    NetworkNode& other = network_.node(neighbour);
    if (other.mark == visited()) continue;
    cut_.Detach(way, other);
    if (other.parent != way) continue;
    other.parent = kOrphan;
    orphans_.push_back(neighbour);
  }
  for (const Visit& visit : visits_) cut_.Remove(network_.node(visit.node));
}

// Follows the tree upwards until a node whose connection is known, and marks the path with it.
bool CutTree::HangsOnSource(int node) {
  int at = node;
  for (;;) {
    const NetworkNode& upper = network_.node(at);
    if (upper.rooted == mending_ || upper.mark >= adrift() || upper.parent == kOrphan) break;
    at = upper.parent_node;
  }
  const bool hangs = network_.node(at).rooted == mending_;
  for (int below = node; below != at;) {
    NetworkNode& known = network_.node(below);
    (hangs ? known.rooted : known.mark) = hangs ? mending_ : adrift();
    below = known.parent_node;
  }
  return hangs;
}

// Hangs the visited nodes between the node that the source reaches and the orphan on that node,
// which reverses the ways of the search.
void CutTree::Attach(std::size_t seen, Incidence back) {
  int way = Opposite(back.way);
  for (int from = back.neighbour;;) {
    const Visit& visit = visits_[seen];
    NetworkNode& attached = network_.node(visit.node);
    attached.Hang(way, from);
    attached.rooted = mending_;
    if (seen == 0) return;
    from = visit.node;
    way = visit.way;
    seen = visit.next;
  }
}

// Rebuilds the tree with the shortest ways to all nodes inside, by breadth-first search.
void CutTree::Rebuild() {
  ++search_;
  visits_.assign(1, {.node = network_.source()});
  network_.node(network_.source()).mark = visited();
  for (std::size_t i = 0; i < visits_.size(); ++i) {
    const int node = visits_[i].node;
    const Ticks time = network_.node(node).anchor;
    for (const auto [way, neighbour] : network_.Incidences(node)) {
      NetworkNode& other = network_.node(neighbour);
      if (!other.inside() || other.mark == visited()) continue;
      if (!network_.IsOpen(way, time, other.anchor)) continue;
      other.mark = visited();
      other.Hang(way, node);
      visits_.push_back({.node = neighbour});
    }
  }
}

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
