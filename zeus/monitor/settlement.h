#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/monitor/activity_board.h"
#include "zeus/monitor/attribution.h"
#include "zeus/monitor/energy_curve.h"
#include "zeus/monitor/measurement.h"

namespace zeus {

// A window from its beginning until its refined result is known.
struct Window {
  // Of one device.
  struct Share {
    EnergyCurve::Point begin;
    Joules attributed{0};
    Joules since{0};   // The ledger's per_weight() when this window came to the top of its lane.
    Joules shared{0};  // The ledger's shared(): at the beginning, then what it grew by.
  };

  WindowId id;
  std::string name;
  std::uint64_t lane;
  double weight;
  bool synchronize;
  bool read_at_edges;
  bool refinable;  // False when there were too many to keep.
  TimePoint begin;
  TimePoint end{};
  std::vector<Share> shares;  // Empty until the beginning is settled.
};

// Goes through the edges of windows in the order of time, once the devices' curves are settled
// there, and books every joule exactly once: to the innermost window of each lane, to other
// processes, or to nobody. One owner.
class Settlement {
 public:
  enum class EdgeKind { kBegin, kEnd, kCancel };

  explicit Settlement(std::size_t devices) : ledgers_(devices) {}

  // In order of time.
  void Enqueue(TimePoint time, EdgeKind kind, std::shared_ptr<Window> window) {
    edges_.push_back({.time = time, .kind = kind, .window = std::move(window)});
  }
  // Of other processes; in order of time.
  void Enqueue(const ActivityBoard::Change& change) { others_.push_back(change); }

  std::size_t unsettled() const { return edges_.size(); }
  // A window that has ended and is not settled; null if there is none.
  std::shared_ptr<const Window> FindEnded(WindowId id) const;

  // `curve(device, time)` is final for times up to `until`; `finished(window, ends)` is called for
  // each window that ended by then, with the curve's points at its end. Goes on for at most `most`
  // edges; whether it is done.
  using Curve = std::function<EnergyCurve::Point(std::size_t device, TimePoint time)>;
  using Finished =
      std::function<void(const Window& window, const std::vector<EnergyCurve::Point>& ends)>;
  bool SettleUntil(TimePoint until, const Curve& curve, const Finished& finished, int most);

  // Where the energy of a device counts from. Before the first edge is settled.
  void SetOrigin(std::size_t device, Joules energy) { ledgers_[device].StartFrom(energy); }

  const AttributionLedger& ledger(std::size_t device) const { return ledgers_[device]; }

 private:
  struct Edge {
    TimePoint time;
    EdgeKind kind;
    std::shared_ptr<Window> window;
  };
  using Lane = std::vector<std::shared_ptr<Window>>;  // Innermost last.

  void Advance(TimePoint time, const Curve& curve);
  void Apply(const Edge& edge, const Finished& finished);
  void Begin(const std::shared_ptr<Window>& window);
  void Remove(const std::shared_ptr<Window>& window);
  void Pause(Window& window);
  void Resume(Window& window);
  void UpdateWeights();

  std::vector<AttributionLedger> ledgers_;
  std::vector<EnergyCurve::Point> points_;  // At the instant that is being settled.
  std::deque<Edge> edges_;
  std::deque<ActivityBoard::Change> others_;
  std::unordered_map<std::uint64_t, Lane> lanes_;
};

}  // namespace zeus
