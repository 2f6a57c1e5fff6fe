// A phase (Refine) gets the flow and the times of the phase before and a smaller tolerance by which
// they may disagree. It raises times in a few sweeps along the pipeline, which mends most of what
// disagrees, and restores the order of the activities and the deadline. Then it removes the flow
// that still disagrees, which leaves nodes in excess and in deficit; excess is pushed along arcs of
// negative reduced cost, and a node without such an arc is moved to a later time. PriceUpdate runs
// at the begin and whenever a share of the nodes was moved. All numbers are integers, so that the
// end is exact.
#include "zeus/optimizer/pipeline/cost_scaling.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

namespace zeus::pipeline::internal {
namespace {

// Returns a power of two above the number of nodes, or less if sums of times would overflow.
Ticks ScaleFor(const Problem& problem, const CostTable& costs) {
  constexpr double kLargestTime = 0x1p60;
  double total = 1;
  for (const Computation& computation : problem.computations)
    total += static_cast<double>(costs.costs[static_cast<std::size_t>(computation.kind)].longest());
  auto scale = static_cast<Ticks>(std::bit_ceil(2 * problem.computations.size() + 4));
  while (scale > 1 && total * static_cast<double>(scale) > kLargestTime) scale /= 2;
  return scale;
}

}  // namespace

DeadlineNetwork::DeadlineNetwork(const Problem& problem, const CostTable& costs)
    : scale(ScaleFor(problem, costs)) {
  AddActivities(problem, costs);
  AddWaits(problem);
  nodes.resize(2 * activities.size());
}

void DeadlineNetwork::AddActivities(const Problem& problem, const CostTable& costs) {
  for (const ConvexCost& cost : costs.costs) {
    FlowCurve curve{.times = cost.times, .slopes = cost.slopes};
    for (Ticks& time : curve.times) time *= scale;
    curve.slopes.front() = kUnlimited;
    curve.slopes.push_back(0);
    curves.push_back(std::move(curve));
  }
  curves.push_back({.times = {0}, .slopes = {kUnlimited, 0}});

  const auto order = problem.graph.topological_order();
  computation_of.assign(order.begin(), order.end());
  for (const int computation : order) {
    const int kind = problem.computations[static_cast<std::size_t>(computation)].kind;
    const auto pieces = costs.costs[static_cast<std::size_t>(kind)].times.size();
    activities.push_back({.piece = static_cast<std::int32_t>(pieces) - 1, .curve = kind});
  }
  activities.push_back({.curve = static_cast<std::int32_t>(curves.size()) - 1});
  for (FlowActivity& activity : activities) Refresh(activity);
}

void DeadlineNetwork::AddWaits(const Problem& problem) {
  std::vector<int> position(computation_of.size());
  for (std::size_t i = 0; i < computation_of.size(); ++i)
    position[static_cast<std::size_t>(computation_of[i])] = static_cast<int>(i);

  const int whole = deadline_activity();
  first_wait.push_back(0);
  for (const int computation : computation_of) {
    const auto successors = problem.graph.Successors(computation);
    for (const int next : successors)
      wait_to.push_back(Begin(position[static_cast<std::size_t>(next)]));
    if (successors.empty()) wait_to.push_back(Begin(whole));
    first_wait.push_back(static_cast<std::int32_t>(wait_to.size()));
  }
  for (const int computation : computation_of) {
    if (problem.graph.Predecessors(computation).empty())
      wait_to.push_back(Begin(position[static_cast<std::size_t>(computation)]));
  }
  first_wait.push_back(static_cast<std::int32_t>(wait_to.size()));
  wait_flow.assign(wait_to.size(), 0);

  first_incoming.assign(activities.size() + 1, 0);
  for (const std::int32_t to : wait_to) ++first_incoming[static_cast<std::size_t>(to / 2) + 1];
  for (std::size_t i = 1; i < first_incoming.size(); ++i)
    first_incoming[i] += first_incoming[i - 1];
  std::vector<std::int32_t> next = first_incoming;
  incoming.resize(wait_to.size());
  for (int i = 0; i < size(); ++i) {
    const auto [from, to] = WaitsFrom(i);
    for (int wait = from; wait < to; ++wait) {
      std::int32_t& place = next[static_cast<std::size_t>(WaitTo(wait) / 2)];
      incoming[static_cast<std::size_t>(place++)] = {.wait = wait, .from = End(i)};
    }
  }
}

void DeadlineNetwork::SetDeadline(Ticks deadline) {
  curves.back().times.front() = -deadline * scale;
  Refresh(activities.back());
}

void DeadlineNetwork::Refresh(FlowActivity& activity) const {
  const FlowCurve& curve = curves[static_cast<std::size_t>(activity.curve)];
  const auto piece = static_cast<std::size_t>(activity.piece);
  activity.shortest = curve.times[piece];
  const bool on_slope = activity.flow == curve.slopes[piece + 1] && activity.flow > 0;
  activity.longest = curve.times[on_slope ? piece + 1 : piece];
}

Slope DeadlineNetwork::RoomForMore(int i) const {
  return curve(i).slopes[static_cast<std::size_t>(activity(i).piece)] - activity(i).flow;
}

Slope DeadlineNetwork::RoomForLess(int i) const {
  const FlowActivity& at = activity(i);
  const std::vector<Slope>& slopes = curve(i).slopes;
  const auto piece = static_cast<std::size_t>(at.piece);
  if (at.flow == 0) return 0;
  return at.flow - slopes[at.flow > slopes[piece + 1] ? piece + 1 : piece + 2];
}

void DeadlineNetwork::AddFlow(int i, Slope more) {
  FlowActivity& at = activity(i);
  at.flow += more;
  if (at.flow == curve(i).slopes[static_cast<std::size_t>(at.piece)] && at.piece > 0) --at.piece;
  Refresh(at);
}

void DeadlineNetwork::RemoveFlow(int i, Slope less) {
  FlowActivity& at = activity(i);
  if (at.flow == curve(i).slopes[static_cast<std::size_t>(at.piece) + 1]) ++at.piece;
  at.flow -= less;
  Refresh(at);
}

void DeadlineNetwork::AgreeWithGap(int i, Ticks tolerance) {
  const Ticks gap = Gap(i);
  while (activity(i).piece > 0 && gap < activity(i).shortest - tolerance)
    AddFlow(i, RoomForMore(i));
  while (activity(i).flow > 0 && gap > activity(i).longest + tolerance)
    RemoveFlow(i, RoomForLess(i));
}

Ticks DeadlineNetwork::SetEarliestTimes(std::span<const Ticks> durations) {
  const int whole = deadline_activity();
  node(End(whole)).time = 0;
  for (int i = 0; i <= whole; ++i) {
    Ticks begin = 0;
    for (const IncomingWait& wait : WaitsFor(i)) begin = std::max(begin, node(wait.from).time);
    node(Begin(i)).time = begin;
    if (i < whole) node(End(i)).time = begin + durations[static_cast<std::size_t>(i)];
  }
  return node(Begin(whole)).time;
}

namespace {

// The search ends when this share of the nodes in excess was reached: for the last few it would
// visit nearly all nodes, so they wait for the next update.
constexpr double kShareToReach = 0.7;
// Longer arcs count as this long, which is still a valid bound and keeps the number of buckets low.
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

// Visits all residual arcs that lead to the node.
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
  // Each node becomes later by its distance, and nodes that were not reached by `reached`. Only
  // differences matter, so the latter stay and the others become earlier.
  for (const int at : scanned_) network_.node(at).time -= tolerance * (reached - mark(at).distance);
  std::fill_n(buckets_.begin(),
              std::min<std::size_t>(buckets_.size(), static_cast<std::size_t>(farthest_) + 1), -1);
}

namespace {

constexpr Ticks kNoArc = std::numeric_limits<Ticks>::max() / 4;
constexpr int kSweepsBeforePhase = 20;
// A price update follows after this many relabels per node of the network.
constexpr double kRelabelsPerUpdate = 0.2;
// The finished front of the queue is erased when it is this long.
constexpr std::size_t kFinishedToErase = 1 << 16;

}  // namespace

CostScaling::CostScaling(DeadlineNetwork& network)
    : network_(network), price_update_(network), is_queued_(network.nodes.size(), 0) {}

bool CostScaling::RaiseBegin(int i, Ticks tolerance) {
  FlowNode& begin = network_.node(DeadlineNetwork::Begin(i));
  const FlowActivity& activity = network_.activity(i);
  Ticks time = begin.time;
  for (const IncomingWait& wait : network_.WaitsFor(i))
    time = std::max(time, network_.node(wait.from).time - tolerance);
  if (activity.flow > 0)
    time =
        std::max(time, network_.node(DeadlineNetwork::End(i)).time - activity.longest - tolerance);
  const bool raised = time > begin.time;
  begin.time = time;
  return raised;
}

bool CostScaling::RaiseEnd(int i, Ticks tolerance) {
  FlowNode& end = network_.node(DeadlineNetwork::End(i));
  Ticks time = std::max(end.time, network_.node(DeadlineNetwork::Begin(i)).time +
                                      network_.activity(i).shortest - tolerance);
  const auto [first, last] = network_.WaitsFrom(i);
  for (int wait = first; wait < last; ++wait) {
    if (network_.WaitFlow(wait) > 0)
      time = std::max(time, network_.node(network_.WaitTo(wait)).time - tolerance);
  }
  const bool raised = time > end.time;
  end.time = time;
  return raised;
}

bool CostScaling::RaiseTimes(Ticks tolerance, int sweeps) {
  const int whole = network_.deadline_activity();
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    bool raised = RaiseEnd(whole, tolerance);
    for (int i = 0; i < whole; ++i) {
      raised |= RaiseBegin(i, tolerance);
      raised |= RaiseEnd(i, tolerance);
    }
    raised |= RaiseBegin(whole, tolerance);
    raised |= RaiseEnd(whole, tolerance);
    if (!raised) return true;
    for (int i = whole; i-- > 0;) {
      RaiseEnd(i, tolerance);
      RaiseBegin(i, tolerance);
    }
  }
  return false;
}

void CostScaling::RestoreOrder(Ticks tolerance) {
  const int whole = network_.deadline_activity();
  for (int i = 0; i <= whole; ++i) {
    FlowNode& begin = network_.node(DeadlineNetwork::Begin(i));
    for (const IncomingWait& wait : network_.WaitsFor(i))
      begin.time = std::max(begin.time, network_.node(wait.from).time - tolerance);
    if (i == whole) break;
    FlowNode& end = network_.node(DeadlineNetwork::End(i));
    end.time = std::max(end.time, begin.time + network_.curve(i).times.front() - tolerance);
  }
}

// Moves activities that end too late back, and then those that they depend on.
void CostScaling::RestoreDeadline(Ticks tolerance) {
  const int whole = network_.deadline_activity();
  const Ticks deadline = -network_.curve(whole).times.front();
  FlowNode& last = network_.node(DeadlineNetwork::Begin(whole));
  const Ticks latest = network_.node(DeadlineNetwork::End(whole)).time + deadline + tolerance;
  if (last.time <= latest) return;
  last.time = latest;
  for (int i = whole; i-- > 0;) {
    FlowNode& end = network_.node(DeadlineNetwork::End(i));
    const auto [first_wait, last_wait] = network_.WaitsFrom(i);
    for (int wait = first_wait; wait < last_wait; ++wait)
      end.time = std::min(end.time, network_.node(network_.WaitTo(wait)).time + tolerance);
    FlowNode& begin = network_.node(DeadlineNetwork::Begin(i));
    begin.time = std::min(begin.time, end.time - network_.curve(i).times.front() + tolerance);
  }
}

void CostScaling::AgreeWithTimes(Ticks tolerance) {
  for (int i = 0; i < network_.size(); ++i) {
    FlowNode& begin = network_.node(DeadlineNetwork::Begin(i));
    FlowNode& end = network_.node(DeadlineNetwork::End(i));
    const Slope before = network_.activity(i).flow;
    network_.AgreeWithGap(i, tolerance);
    const Slope more = network_.activity(i).flow - before;
    begin.excess -= more;
    end.excess += more;
    const auto [first, last] = network_.WaitsFrom(i);
    for (int wait = first; wait < last; ++wait) {
      FlowNode& to = network_.node(network_.WaitTo(wait));
      Slope& flow = network_.WaitFlow(wait);
      if (flow == 0 || to.time <= end.time + tolerance) continue;
      end.excess += flow;
      to.excess -= flow;
      flow = 0;
    }
  }
}

void CostScaling::CollectExcesses() {
  queue_.clear();
  next_ = 0;
  in_deficit_.clear();
  for (int at = 0; at < 2 * network_.size(); ++at) {
    const Slope excess = network_.node(at).excess;
    if (excess < 0) in_deficit_.push_back(at);
    if (excess <= 0) continue;
    queue_.push_back(at);
    is_queued_[static_cast<std::size_t>(at)] = 1;
  }
}

void CostScaling::Refine(Ticks tolerance) {
  tolerance_ = tolerance;
  if (has_flow_) RaiseTimes(tolerance, kSweepsBeforePhase);
  has_flow_ = true;
  RestoreOrder(tolerance);
  RestoreDeadline(tolerance);
  AgreeWithTimes(tolerance);
  CollectExcesses();
  const auto most_relabels =
      static_cast<std::size_t>(kRelabelsPerUpdate * static_cast<double>(network_.nodes.size()));
  relabels_ = most_relabels + 1;  // The phase begins with a price update.
  while (next_ < queue_.size()) {
    if (relabels_ > most_relabels) {
      price_update_.Run(std::span(queue_).subspan(next_), in_deficit_, tolerance);
      relabels_ = 0;
    }
    const int at = queue_[next_++];
    is_queued_[static_cast<std::size_t>(at)] = 0;
    Discharge(at);
    if (next_ < kFinishedToErase) continue;
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(next_));
    next_ = 0;
  }
}

void CostScaling::Discharge(int at) {
  FlowNode& node = network_.node(at);
  while (node.excess > 0) {
    const bool is_end = at % 2 == 1;
    const Ticks first = is_end ? PushToWaiting(at) : PushActivity(at);
    if (node.excess == 0) return;
    const Ticks second = is_end ? PushBackActivity(at) : PushBackWaits(at);
    if (node.excess == 0) return;
    node.time += std::min(first, second) + tolerance_;
    ++relabels_;
  }
}

Ticks CostScaling::PushToWaiting(int at) {
  const FlowNode& node = network_.node(at);
  const auto [first, last] = network_.WaitsFrom(at / 2);
  Ticks least = kNoArc;
  for (int wait = first; wait < last; ++wait) {
    const int to = network_.WaitTo(wait);
    const Ticks reduced_cost = network_.node(to).time - node.time;
    if (reduced_cost < 0) {
      network_.WaitFlow(wait) += node.excess;
      Move(at, to, node.excess);
      return 0;
    }
    least = std::min(least, reduced_cost);
  }
  return least;
}

Ticks CostScaling::PushBackActivity(int at) {
  const FlowNode& node = network_.node(at);
  const int i = at / 2;
  while (network_.activity(i).flow > 0) {
    const Ticks reduced_cost =
        network_.activity(i).longest + network_.node(at - 1).time - node.time;
    if (reduced_cost >= 0) return reduced_cost;
    const Slope amount = std::min(node.excess, network_.RoomForLess(i));
    network_.RemoveFlow(i, amount);
    Move(at, at - 1, amount);
    if (node.excess == 0) return 0;
  }
  return kNoArc;
}

Ticks CostScaling::PushActivity(int at) {
  const FlowNode& node = network_.node(at);
  const int i = at / 2;
  while (true) {
    const Ticks reduced_cost =
        network_.node(at + 1).time - network_.activity(i).shortest - node.time;
    if (reduced_cost >= 0) return reduced_cost;
    const Slope amount = std::min(node.excess, network_.RoomForMore(i));
    network_.AddFlow(i, amount);
    Move(at, at + 1, amount);
    if (node.excess == 0) return 0;
  }
}

Ticks CostScaling::PushBackWaits(int at) {
  const FlowNode& node = network_.node(at);
  Ticks least = kNoArc;
  for (const IncomingWait& wait : network_.WaitsFor(at / 2)) {
    Slope& flow = network_.WaitFlow(wait.wait);
    if (flow == 0) continue;
    const Ticks reduced_cost = network_.node(wait.from).time - node.time;
    if (reduced_cost < 0) {
      const Slope amount = std::min(node.excess, flow);
      flow -= amount;
      Move(at, wait.from, amount);
      if (node.excess == 0) return 0;
    } else {
      least = std::min(least, reduced_cost);
    }
  }
  return least;
}

void CostScaling::Move(int from, int to, Slope amount) {
  network_.node(from).excess -= amount;
  FlowNode& target = network_.node(to);
  target.excess += amount;
  char& queued = is_queued_[static_cast<std::size_t>(to)];
  if (target.excess <= 0 || queued != 0) return;
  queued = 1;
  queue_.push_back(to);
}

bool CostScaling::MakeTimesExact(int sweeps) {
  const std::vector<FlowNode> before = network_.nodes;
  for (FlowNode& node : network_.nodes) {
    const Ticks below = node.time % network_.scale;
    node.time -= below < 0 ? below + network_.scale : below;
  }
  if (RaiseTimes(0, sweeps)) return true;
  network_.nodes = before;
  return false;
}

}  // namespace zeus::pipeline::internal
