#include "zeus/optimizer/pipeline/cut_tree.h"

#include <algorithm>

namespace zeus::pipeline {
std::optional<Slope> CutTree::SendAll() {
  // Mending leaves detours behind. Where they have made a path that much longer than it need be,
  // the tree is made anew.
  constexpr std::size_t kDetour = 2;
  constexpr std::size_t kLeastPath = 64;
  Slope sum = 0;
  while (cut_.ReachesSink()) {
    FindPath();
    if (path_.size() > kDetour * short_path_ + kLeastPath) {
      Renew();
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
  for (const int way : path_) amount = std::min(amount, network_.arc(ArcOf(way)).Residual(way));
  if (amount >= kUnlimited / 2) return std::nullopt;
  ++mending_;
  bool whole = true;  // From the source to here.
  for (std::size_t i = path_.size(); i-- > 0;) {
    const int way = path_[i];
    NetworkArc& arc = network_.arc(ArcOf(way));
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
  for (std::size_t i = 0; i < orphans_.size(); ++i)  // Grows meanwhile.
    if (network_.node(orphans_[i]).parent == kOrphan && !Reattach(orphans_[i]))
      cut_.Remove(seen_, visited(), orphans_);
  orphans_.clear();
}

bool CutTree::Reattach(int orphan) {
  ++search_;
  seen_.assign(1, orphan);
  network_.node(orphan).mark = visited();
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    const int node = seen_[i];
    const Ticks time = network_.node(node).anchor;
    for (const Incidence& back : network_.Incidences(node)) {
      NetworkNode& other = network_.node(back.neighbour);
      if (!other.inside() || other.mark == visited()) continue;
      if (!network_.IsOpen(Opposite(back.way), other.anchor, time)) continue;
      if (HangsOnSource(back.neighbour)) {
        Attach(node, back, orphan);
        return true;
      }
      other.mark = visited();
      other.onward = Opposite(back.way);
      seen_.push_back(back.neighbour);
      network_.Prefetch(back.neighbour);
    }
  }
  return false;
}

// Follows the tree upwards as far as it is not known where that ends, and remembers it.
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

// Turns the tree: from a node that has a way back to where the source is, onwards to the orphan.
void CutTree::Attach(int node, Incidence back, int orphan) {
  int way = Opposite(back.way);
  for (int from = back.neighbour;;) {
    NetworkNode& attached = network_.node(node);
    attached.Hang(way, from);
    attached.rooted = mending_;
    if (node == orphan) return;
    from = node;
    way = attached.onward;
    node = network_.arc(ArcOf(way)).To(way);
  }
}

// The shortest ways to all nodes inside.
void CutTree::Renew() {
  ++search_;
  seen_.assign(1, network_.source());
  network_.node(network_.source()).mark = visited();
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    const int node = seen_[i];
    const Ticks time = network_.node(node).anchor;
    for (const auto [way, neighbour] : network_.Incidences(node)) {
      NetworkNode& other = network_.node(neighbour);
      if (!other.inside() || other.mark == visited()) continue;
      if (!network_.IsOpen(way, time, other.anchor)) continue;
      other.mark = visited();
      other.Hang(way, node);
      seen_.push_back(neighbour);
    }
  }
}

}  // namespace zeus::pipeline
