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
    const int way = network_.node(node).parent;
    path_.push_back(way);
    node = network_.arc(ArcOf(way)).From(way);
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
    if (network_.node(orphans_[i]).parent == kOrphan && !Reattach(orphans_[i])) Lose();
  orphans_.clear();
}

// Whether something can flow along a way between nodes inside.
bool CutTree::IsOpen(int way) const {
  const NetworkArc& arc = network_.arc(ArcOf(way));
  return arc.Residual(way) > 0 &&
         network_.node(arc.ends[1]).anchor - network_.node(arc.ends[0]).anchor == arc.duration;
}

bool CutTree::Reattach(int orphan) {
  ++search_;
  seen_.assign(1, orphan);
  network_.node(orphan).visited = search_;
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    const int node = seen_[i];
    for (const auto [way, neighbour] : network_.Incidences(node)) {
      NetworkNode& other = network_.node(neighbour);
      if (!other.inside() || other.visited == search_ || !IsOpen(Opposite(way))) continue;
      if (HangsOnSource(neighbour)) {
        Attach(node, Opposite(way), orphan);
        return true;
      }
      other.visited = search_;
      other.onward = Opposite(way);
      seen_.push_back(neighbour);
    }
  }
  return false;
}

// Follows the tree upwards as far as it is not known where that ends, and remembers it.
bool CutTree::HangsOnSource(int node) {
  int at = node;
  while (network_.node(at).rooted != mending_ && network_.node(at).adrift != search_ &&
         network_.node(at).parent != kOrphan)
    at = network_.ParentOf(at);
  const bool hangs = network_.node(at).rooted == mending_;
  for (int below = node; below != at; below = network_.ParentOf(below)) {
    NetworkNode& known = network_.node(below);
    (hangs ? known.rooted : known.adrift) = hangs ? mending_ : search_;
  }
  return hangs;
}

// Turns the tree from a node that `way` leads to, onwards to the orphan.
void CutTree::Attach(int node, int way, int orphan) {
  for (;;) {
    NetworkNode& attached = network_.node(node);
    attached.parent = way;
    attached.rooted = mending_;
    if (node == orphan) return;
    way = attached.onward;
    node = network_.arc(ArcOf(way)).To(way);
  }
}

// What the last search saw leaves the cut; what hung on it looks for something else.
void CutTree::Lose() {
  for (const int node : seen_)
    for (const auto [way, neighbour] : network_.Incidences(node)) {
      NetworkNode& other = network_.node(neighbour);
      if (other.parent != way || other.visited == search_) continue;
      other.parent = kOrphan;
      orphans_.push_back(neighbour);
    }
  for (const int node : seen_) cut_.Remove(node);
}

// The shortest ways to all nodes inside.
void CutTree::Renew() {
  ++search_;
  seen_.assign(1, network_.source());
  network_.node(network_.source()).visited = search_;
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    for (const auto [way, neighbour] : network_.Incidences(seen_[i])) {
      NetworkNode& other = network_.node(neighbour);
      if (!other.inside() || other.visited == search_ || !IsOpen(way)) continue;
      other.visited = search_;
      other.parent = way;
      seen_.push_back(neighbour);
    }
  }
}

}  // namespace zeus::pipeline
