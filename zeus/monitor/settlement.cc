// Windows of a thread are nested or overlap; those of several threads run beside each other. A lane
// is the stack of a thread's windows, and only its innermost window receives energy. Edges of
// windows, and news of other processes, are applied in the order of time: between two edges nothing
// changes, so the energy of a device in between is split by the weights of the lanes that use it.
// The ledger keeps the energy per unit of weight as a running sum, so an edge costs the same
// however many windows are open.
#include "zeus/monitor/settlement.h"

#include <algorithm>
#include <iterator>

namespace zeus {

bool Settlement::SettleUntil(TimePoint until, const Curve& curve, const Finished& finished,
                             int most) {
  for (; most > 0; --most) {
    const bool edge_due = !edges_.empty() && edges_.front().time <= until;
    const bool change_due = !others_.empty() && others_.front().time <= until;
    if (!edge_due && !change_due) return true;
    if (change_due && (!edge_due || others_.front().time < edges_.front().time)) {
      const ActivityBoard::Change change = others_.front();
      others_.pop_front();
      Advance(change.time, curve);
      ledgers_[change.device].SetOthers(change.weight);
      continue;
    }
    const Edge edge = std::move(edges_.front());
    edges_.pop_front();
    Advance(edge.time, curve);
    Apply(edge, finished);
  }
  return false;
}

std::shared_ptr<const Window> Settlement::FindEnded(WindowId id) const {
  const auto found = std::ranges::find_if(edges_, [id](const Edge& edge) {
    return edge.kind == EdgeKind::kEnd && edge.window->id == id;
  });
  return found == edges_.end() ? nullptr : found->window;
}

void Settlement::Advance(TimePoint time, const Curve& curve) {
  points_.resize(ledgers_.size());
  for (std::size_t device = 0; device < ledgers_.size(); ++device) {
    points_[device] = curve(device, time);
    ledgers_[device].Advance(points_[device].energy);
  }
}

void Settlement::Apply(const Edge& edge, const Finished& finished) {
  Window& window = *edge.window;
  if (edge.kind == EdgeKind::kBegin) {
    Begin(edge.window);
    return;
  }
  Remove(edge.window);
  if (edge.kind == EdgeKind::kEnd) {
    for (std::size_t device = 0; device < ledgers_.size(); ++device) {
      Window::Share& share = window.shares[device];
      share.shared = ledgers_[device].shared() - share.shared;
    }
    finished(window, points_);
    return;
  }
  for (std::size_t device = 0; device < ledgers_.size(); ++device)
    ledgers_[device].Return(window.shares[device].attributed);
}

void Settlement::Begin(const std::shared_ptr<Window>& window) {
  window->shares.resize(ledgers_.size());
  for (std::size_t device = 0; device < ledgers_.size(); ++device) {
    window->shares[device].begin = points_[device];
    window->shares[device].shared = ledgers_[device].shared();
  }
  Lane& lane = lanes_[window->lane];
  if (!lane.empty()) Pause(*lane.back());
  lane.push_back(window);
  Resume(*window);
  UpdateWeights();
}

void Settlement::Remove(const std::shared_ptr<Window>& window) {
  const auto found = lanes_.find(window->lane);
  Lane& lane = found->second;
  const bool on_top = lane.back() == window;
  if (on_top) Pause(*window);
  // Mostly the innermost one.
  lane.erase(std::prev(std::ranges::find(lane.rbegin(), lane.rend(), window).base()));
  if (lane.empty()) {
    lanes_.erase(found);
  } else if (on_top) {
    Resume(*lane.back());
  }
  UpdateWeights();
}

void Settlement::Pause(Window& window) {
  for (std::size_t device = 0; device < ledgers_.size(); ++device) {
    Window::Share& share = window.shares[device];
    share.attributed += (ledgers_[device].per_weight() - share.since) * window.weight;
  }
}

void Settlement::Resume(Window& window) {
  for (std::size_t device = 0; device < ledgers_.size(); ++device)
    window.shares[device].since = ledgers_[device].per_weight();
}

void Settlement::UpdateWeights() {
  double weight = 0;
  for (const auto& [id, lane] : lanes_) weight += lane.back()->weight;
  for (AttributionLedger& ledger : ledgers_) ledger.SetOwn(lanes_.size(), weight);
}

}  // namespace zeus
