#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"
#include "zeus/monitor/energy_curve.h"
#include "zeus/monitor/measurement.h"
#include "zeus/monitor/sharing/activity_board.h"

namespace zeus {

// Splits the energy of one device among those who use it at the same time, by weight. Everything
// is booked exactly once: own shares + others + unattributed = device. One owner.
class AttributionLedger {
 public:
  // Energy counts from here.
  void StartFrom(Joules energy) { origin_ = energy_ = energy; }

  // The device has used `energy` in all; what came since the last call is booked by the weights
  // that held meanwhile. Energy does not decrease.
  void Advance(Joules energy) {
    const Joules used = energy - energy_;
    energy_ = energy;
    const double weights = own_weight_ + others_weight_;
    if (weights <= 0) {
      unattributed_ += used;
      return;
    }
    if (own_lanes_ > 1 || (own_lanes_ > 0 && others_weight_ > 0)) shared_ += used;
    per_weight_ += used / weights;
    others_ += used * (others_weight_ / weights);
  }

  // Sets the number and the total weight of this process's lanes.
  void SetOwn(std::size_t lanes, double weight) {
    own_lanes_ = lanes;
    own_weight_ = std::max(weight, 0.0);
  }
  void SetOthers(double weight) { others_weight_ = std::max(weight, 0.0); }

  // Energy that a share of weight 1 has received so far: a window's part is its weight times the
  // growth of this while the window was on top of its lane.
  Joules per_weight() const { return per_weight_; }

  // A share that was received and is given back.
  void Return(Joules share) { unattributed_ += share; }

  // Used while an own lane was not alone on the device.
  Joules shared() const { return shared_; }
  Joules device() const { return energy_ - origin_; }
  Joules energy() const { return energy_; }  // As it was last told.
  Joules unattributed() const { return unattributed_; }
  Joules others() const { return others_; }

 private:
  std::size_t own_lanes_ = 0;
  double own_weight_ = 0;
  double others_weight_ = 0;
  Joules origin_{0};
  Joules energy_{0};
  Joules per_weight_{0};
  Joules unattributed_{0};
  Joules others_{0};
  Joules shared_{0};
};

// A window from its beginning until its refined result is known.
struct Window {
  // The window's part of one device.
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
// processes, or as unclaimed. One owner.
class Settlement {
 public:
  enum class EdgeKind { kBegin, kEnd, kCancel };

  explicit Settlement(std::size_t devices) : ledgers_(devices) {}

  // In order of time.
  void Enqueue(TimePoint time, EdgeKind kind, std::shared_ptr<Window> window) {
    edges_.push_back({.time = time, .kind = kind, .window = std::move(window)});
  }
  // Adds a change by another process; changes come in order of time.
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
  using Lane = std::vector<std::shared_ptr<Window>>;  // The innermost window is last.

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
