// Begin with FrontierSweep at the end of the header; it uses the classes above it in turn. A step
// goes to the next event of the growing cut: an arc becomes tight, a computation reaches a
// breakpoint of its cost, or the sink joins the cut. When the sink joins, flow is augmented along
// the tree until the sink is cut off again. Only the nodes near the change are visited, which is
// what makes the frontier of 10,000 computations a matter of seconds (docs/pipeline.md).
#include "zeus/optimizer/pipeline/frontier_sweep.h"

#include <algorithm>

namespace zeus::pipeline {
namespace {

const ConvexCost& FindCost(const Problem& problem, const CostTable& costs, int computation) {
  return costs.costs[At(problem.computations[At(computation)].kind)];
}

std::vector<Ticks> EarliestBegins(const ComputationGraph& graph, std::span<const Ticks> durations) {
  std::vector<Ticks> begins(At(graph.size()), 0);
  for (const int computation : graph.topological_order())
    for (const int next : graph.Successors(computation))
      begins[At(next)] =
          std::max(begins[At(next)], begins[At(computation)] + durations[At(computation)]);
  return begins;
}

// Fills a network with the arcs of a problem. Computations are ranked by the time they begin.
class Builder {
 public:
  Builder(ActivityNetwork& network, const Problem& problem, const CostTable& costs)
      : network_(network), problem_(problem), costs_(costs), graph_(problem.graph) {}

  void Build() {
    RankComputations();
    network_.nodes.resize(2 * rank_.size() + 2);
    AddActivities();
    AddWaits();
    AddIncidences();
  }

 private:
  int Begin(int computation) const { return 2 + 2 * rank_[At(computation)]; }
  int End(int computation) const { return 3 + 2 * rank_[At(computation)]; }

  void RankComputations() {
    for (int i = 0; i < graph_.size(); ++i)
      durations_.push_back(FindCost(problem_, costs_, i).longest());
    begins_ = EarliestBegins(graph_, durations_);
    // Computations without duration may begin at the same time: they stay in topological order.
    order_.assign(graph_.topological_order().begin(), graph_.topological_order().end());
    std::ranges::stable_sort(order_, {}, [&](int i) { return begins_[At(i)]; });
    rank_.resize(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) rank_[At(order_[i])] = static_cast<int>(i);
  }

  void AddActivities() {
    for (const int i : order_) {
      const ConvexCost& cost = FindCost(problem_, costs_, i);
      const Ticks begin = begins_[At(i)];
      const Ticks end = begin + durations_[At(i)];
      network_.node(Begin(i)).anchor = begin;
      network_.node(End(i)).anchor = end;
      network_.longest = std::max(network_.longest, end);
      network_.arcs.push_back({.duration = durations_[At(i)], .ends = {Begin(i), End(i)}});
      network_.activities.push_back(
          {.cost = &cost, .breakpoint = static_cast<int>(cost.times.size()) - 1, .computation = i});
    }
    network_.node(network_.sink()).anchor = network_.longest;
    for (int activity = 0; activity < graph_.size(); ++activity) network_.SetBounds(activity);
  }

  void AddWaits() {
    for (const int i : order_)
      if (graph_.Predecessors(i).empty())
        network_.arcs.push_back({.ends = {network_.source(), Begin(i)}});
    for (const int i : order_) {
      for (const int next : graph_.Successors(i))
        network_.arcs.push_back({.ends = {End(i), Begin(next)}});
      if (graph_.Successors(i).empty())
        network_.arcs.push_back({.ends = {End(i), network_.sink()}});
    }
  }

  void AddIncidences() {
    for (const NetworkArc& arc : network_.arcs)
      for (const int end : arc.ends) ++network_.node(end).end;
    std::int32_t sum = 0;
    for (NetworkNode& node : network_.nodes) {
      sum += node.end;
      node.first = node.end = sum - node.end;
    }
    network_.incidences.resize(2 * network_.arcs.size());
    for (int way = 0; way < static_cast<int>(2 * network_.arcs.size()); ++way) {
      const NetworkArc& arc = network_.arc(ArcNumber(way));
      network_.incidences[At(network_.node(arc.From(way)).end++)] = {way, arc.To(way)};
    }
  }

  ActivityNetwork& network_;
  const Problem& problem_;
  const CostTable& costs_;
  const ComputationGraph& graph_;
  std::vector<Ticks> durations_{};
  std::vector<Ticks> begins_{};
  std::vector<int> order_{};
  std::vector<int> rank_{};  // Place of each computation in order_.
};

}  // namespace

ActivityNetwork::ActivityNetwork(const Problem& problem, const CostTable& costs) {
  Builder(*this, problem, costs).Build();
}

void ActivityNetwork::SetBounds(int activity) {
  Activity& state = activities[At(activity)];
  NetworkArc& arc = arcs[At(activity)];
  const ConvexCost& cost = *state.cost;
  const std::size_t k = At(state.breakpoint);
  // By complementary slackness the flow lies between the slopes on both sides of the duration.
  const Slope flow = state.lower + arc.residual[1];
  const Slope above = k + 1 < cost.times.size() ? cost.slopes[k + 1] : 0;
  Slope below = above;
  if (arc.duration == cost.times[k]) below = k == 0 ? kUnlimited : cost.slopes[k];
  state.lower = above;
  arc.residual = {below - flow, flow - above};
}

GrowingCut::GrowingCut(ActivityNetwork& network, std::vector<DurationChange>& changes)
    : network_(network), changes_(changes), events_(network.arcs.size()), time_(network.longest) {
  for (NetworkNode& node : network_.nodes) node.anchor -= time_;
  Join(network_.source(), kRoot, network_.source());
  Grow();
}

Ticks GrowingCut::NextTime(Ticks bound) {
  const EventQueue::Event* const next = events_.Next();
  return next == nullptr ? bound : std::max(bound, next->time);
}

void GrowingCut::PassEvent() {
  const EventQueue::Event event = *events_.Next();
  time_ = event.time;
  BringUpToNow(event.arc);
  const NetworkArc& arc = network_.arc(event.arc);
  const int way = 2 * event.arc + (network_.node(arc.ends[0]).inside() ? 0 : 1);
  Inspect(way, arc.From(way), arc.To(way));
  Grow();
}

void GrowingCut::Join(int node, int way, int from) {
  NetworkNode& joining = network_.node(node);
  joining.anchor += time_;
  joining.Hang(way, from);
  joined_.push_back(node);
  network_.Prefetch(node);
}

void GrowingCut::Grow() {
  for (std::size_t i = 0; i < joined_.size(); ++i) {
    const int from = joined_[i];
    for (const auto [way, neighbour] : network_.Incidences(from)) {
      // Only arcs across the edge of the cut have events. This one crossed it until `from` joined.
      if (!network_.node(neighbour).inside()) {
        Inspect(way, from, neighbour);
      } else if (events_.Waits(ArcNumber(way))) {
        BringUpToNow(ArcNumber(way));
      }
    }
  }
  joined_.clear();
}

// Inspects a way that leads out of the cut: lets its end join, or schedules the event at which that
// may change.
void GrowingCut::Inspect(int way, int from, int to) {
  if ((way & 1) == 0) {
    InspectForward(way, from, to);
  } else {
    InspectBackward(way, from, to);
  }
}

void GrowingCut::InspectForward(int way, int from, int to) {
  const Ticks gap = network_.node(to).anchor + time_ - network_.node(from).anchor;
  // An arc that is no activity has neither a duration nor a limit.
  const bool waits = !network_.IsActivity(ArcNumber(way));
  const Ticks slack = waits ? gap : gap - network_.arc(ArcNumber(way)).duration;
  if (slack > 0) {
    events_.Schedule(ArcNumber(way), time_ - slack);
  } else if (waits || network_.arc(ArcNumber(way)).residual[0] > 0) {
    Join(to, way, from);
  } else {
    Move(ArcNumber(way), -1);
  }
}

void GrowingCut::InspectBackward(int way, int from, int to) {
  const Ticks gap = network_.node(from).anchor - network_.node(to).anchor - time_;
  const bool waits = !network_.IsActivity(ArcNumber(way));
  // An arc that leads back in and is not tight gains slack as time falls, so it has no event.
  if (waits && gap > 0) return;
  const NetworkArc& arc = network_.arc(ArcNumber(way));
  if (gap > arc.duration) return;
  if (arc.residual[1] > 0) {
    Join(to, way, from);
  } else if (!waits && network_.activities[static_cast<std::size_t>(ArcNumber(way))].lower > 0) {
    Move(ArcNumber(way), 1);
  }
}

void GrowingCut::Move(int activity, int direction) {
  Activity& state = network_.activities[static_cast<std::size_t>(activity)];
  const Ticks duration = network_.arc(activity).duration;
  const auto k = static_cast<std::size_t>(state.breakpoint);
  const std::vector<Ticks>& times = state.cost->times;
  Ticks target = times[k];
  if (direction > 0) {
    target = times[k + 1];
  } else if (target == duration) {
    target = times[k - 1];
  }
  state.direction = direction;
  state.since = time_;
  events_.Schedule(activity, time_ - direction * (target - duration));
}

void GrowingCut::BringUpToNow(int arc) {
  events_.Cancel(arc);
  if (!network_.IsActivity(arc)) return;
  Activity& state = network_.activities[static_cast<std::size_t>(arc)];
  if (state.direction == 0) return;
  if (state.since != time_) {
    Ticks& duration = network_.arc(arc).duration;
    duration += state.direction * (state.since - time_);
    const std::vector<Ticks>& times = state.cost->times;
    auto k = static_cast<std::size_t>(state.breakpoint);
    while (k > 0 && times[k] > duration) --k;
    while (k + 1 < times.size() && times[k + 1] <= duration) ++k;
    state.breakpoint = static_cast<std::int32_t>(k);
    changes_.push_back({state.since, time_, state.computation, state.direction});
    network_.SetBounds(arc);
  }
  state.direction = 0;
}

void GrowingCut::BringAllUpToNow() {
  for (int arc = 0; arc < static_cast<int>(network_.activities.size()); ++arc)
    if (events_.Waits(arc)) BringUpToNow(arc);
}

void GrowingCut::WatchRemoved() {
  for (const int way : boundary_) {
    const NetworkArc& arc = network_.arc(ArcNumber(way));
    if (network_.node(arc.To(way)).inside()) Inspect(Opposite(way), arc.To(way), arc.From(way));
  }
  boundary_.clear();
}

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
