#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"
#include "zeus/monitor/variability.h"

namespace zeus {

// When windows began and ended of late: where the load of a device tends to change. One owner.
class EdgeLog {
 public:
  enum class Kind {
    kPlain,
    kWorkEnded,  // The program waited for the device until right before this edge.
  };

  // In order of time.
  void Mark(TimePoint time, Kind kind = Kind::kPlain) {
    if (times_.size() == kMost) times_.pop_front();
    times_.push_back(time);
    if (time > last_) {
      before_last_ = std::exchange(last_, time);
      before_last_ended_work_ = std::exchange(last_ended_work_, false);
    }
    if (kind == Kind::kPlain) return;
    ++after_work_;
    last_ended_work_ = true;
    if (work_ended_.size() == kMost) work_ended_.pop_front();
    if (work_ended_.empty() || work_ended_.back() < time) work_ended_.push_back(time);
  }

  // Number of edges so far at which work ended.
  std::size_t after_work() const { return after_work_; }

  // Whether the last one before `before`, which is the present or nearly so, came after `after`.
  bool AnyOfLate(TimePoint after, TimePoint before) const {
    return (last_ < before ? last_ : before_last_) > after;
  }
  // Whether an edge was marked at `time`, one of the last two instants, and work ended there.
  bool WorkEndedAt(TimePoint time) const {
    return time == last_ ? last_ended_work_ : time == before_last_ && before_last_ended_work_;
  }
  bool IsEdge(TimePoint time) const { return time == last_ || time == before_last_; }

  struct Inside {
    std::size_t count = 0;
    TimePoint first{};
    TimePoint last{};
  };
  Inside Between(TimePoint begin, TimePoint end) const {
    const auto first = std::ranges::upper_bound(times_, begin);
    const auto last = std::lower_bound(first, times_.end(), end);
    if (first == last) return {};
    const bool one_instant = *first == *std::prev(last);
    return {.count = one_instant ? 1 : static_cast<std::size_t>(last - first),
            .first = *first,
            .last = *std::prev(last)};
  }
  // Instants at which work ended; of more than a few, the last ones.
  std::vector<TimePoint> WorkEndedBetween(TimePoint begin, TimePoint end) const {
    constexpr std::ptrdiff_t kFew = 8;
    const auto first = std::ranges::upper_bound(work_ended_, begin);
    const auto last = std::ranges::upper_bound(work_ended_, end);
    return {last - std::min(kFew, last - first), last};
  }

 private:
  // More than a stretch between two updates can make use of.
  static constexpr std::size_t kMost = 4096;

  std::deque<TimePoint> times_;
  std::deque<TimePoint> work_ended_;
  TimePoint last_ = TimePoint::min();
  TimePoint before_last_ = TimePoint::min();  // Differs from last_.
  std::size_t after_work_ = 0;
  bool last_ended_work_ = false;
  bool before_last_ended_work_ = false;
};

// The mean power of a device between two instants, as far as its sensor tells.
struct Stretch {
  enum class Kind {
    kObserved,  // `power` is the mean over all of it.
    kGap,       // Between two averaging windows of the sensor: nothing is known.
    kDark,      // The device could not be read: counts as no energy, and is said.
  };
  TimePoint begin;
  TimePoint end;
  Watts power;
  Kind kind = Kind::kObserved;
  // From a counter: exact in energy, so that not knowing when it ended matters even for a load that
  // is steady.
  bool counted = false;
  Seconds end_sigma{0};  // How well it is known when it ended.
  Joules end_doubt{0};   // How far the energy up to its end may be off, beyond that.
};

// The cumulative energy of one device as a function of time, with its uncertainty.
//
// A sensor tells the energy between its updates; when inside such a stretch it was used is worked
// out from the levels before and after (a load that changed from one plateau to another did so at
// the one instant that explains the mean) or is the mean over all plausible places (placement.h),
// with the variance of these. Once settled the curve never changes, so the energies of windows that
// partition a period add up to the energy of the period. Beyond that it is extrapolated. One owner.
class EnergyCurve {
 public:
  // Knowledge about the energy up to an instant. Everything but edge_variance is cumulative.
  struct Point {
    Joules energy;
    double edge_variance = 0;      // J²: where inside a stretch was the energy used?
    double sampling_variance = 0;  // J²: what happened while the sensor did not look?
    Joules unseen;                 // Energy of gaps: a guess from what lies around them.
    Seconds observed{0};
    Seconds dark{0};
    Seconds uneven{0};  // Gaps next to readings that vary too fast to be trusted.
    // Gaps while the readings drift, and the standard deviation of the readings over them.
    Seconds drifting{0};
    Joules drift;
    Joules steps;  // Standard deviations of the changes inside gaps, added up.
    std::int64_t updates = 0;
    // Energy that may be missing because the sensor has not shown it yet, and is in no variance: a
    // load that was steady so far is taken to have gone on. Zero for what is settled.
    Joules hidden;
  };

  // `edges` is where loads may change, and must outlive the curve.
  explicit EnergyCurve(const EdgeLog& edges) : edges_(edges) {}

  // Nothing is known before `begin`; `power` is the best guess until the first stretch is added.
  void Start(TimePoint begin, Watts power);
  bool started() const { return !knots_.empty(); }

  // Begins where the last stretch ended.
  void Add(const Stretch& stretch);

  // The device draws no more than this: its power limit.
  void SetCeiling(Watts ceiling);

  // The curve is forgotten before remembered_since() and final before settled_until().
  TimePoint remembered_since() const { return knots_.front().time; }
  TimePoint settled_until() const { return knots_.back().time; }
  TimePoint end() const { return pending_.empty() ? settled_until() : pending_.back().end; }
  // Exact for what is settled, extrapolated for the rest.
  Point At(TimePoint time) const;

  // A sensor that does not look for `gap` of its time can miss work that is shorter. Returns the
  // variance (J²) of such work in a window of this energy and length, in which an idle device was
  // seen: windows are opened around work. Zero where work was seen, and for a busy device.
  double HiddenWorkVariance(Joules energy, Seconds time, Seconds gap) const;

  // Over the last observed stretch.
  Watts power() const { return latest_; }
  // How far the present power may be from power().
  Watts power_sigma() const { return latest_sigma_; }

 private:
  // The totals at `time` and the shape of the curve after it.
  struct Knot {
    TimePoint time;
    Point totals;
    Watts power;
    bool observed;
    bool dark;
    // The stretch that this is a part of, and how far the curve may be off in the middle of it.
    TimePoint begin;
    TimePoint end;
    double middle_variance;
    double swing_variance;  // Covers a load that swings inside the stretch.
    double timing_variance;
    // How far apart the plausible places of a change are, here and at the next knot.
    Joules place_sigma;
    Joules next_place_sigma;
  };
  struct Piece {
    TimePoint end;
    Watts power;
    Joules place_sigma{0};  // Spread of the plausible places at the end of the piece.
  };
  // How the power went inside a stretch.
  struct Shape {
    std::vector<Piece> pieces;
    Watts doubt{0};   // How far the power may be off, where the pieces are a guess.
    Watts spread{0};  // Between the levels around it.
    bool ends_on_plateau = true;
    bool placed = false;  // The pieces are a mean over places, with the variance of these.
  };

  bool CanSettle() const;
  void Settle();
  Shape ShapeOfObserved(const Stretch& stretch) const;
  Shape ShapeOfGap(const Stretch& stretch) const;
  std::optional<Shape> StepBetween(const Stretch& stretch, Watts right) const;
  // Whether the load stays at the level of the stretch after the first pending one.
  bool NextIsPlateau() const;
  Shape ShapeOfPlaces(const Stretch& stretch) const;
  void Append(const Stretch& stretch, const Shape& shape);
  double Freedom() const;
  double SwingVariance(const Stretch& stretch) const;
  void Learn(const Stretch& stretch, const Shape& shape);
  Knot NextKnot(const Knot& from, const Piece& piece) const;

  // Returns the observed stretch number `skip` after the first pending one; null if there is none.
  const Stretch* NextObserved(std::size_t skip) const;
  // Evaluates the part of the curve that was observed but is not settled.
  Point Provisional(TimePoint time) const;
  double ProvisionalVariance(const Stretch& stretch, TimePoint time) const;
  Point Extrapolate(TimePoint time) const;
  void AddDrift(Point& point, Seconds gap) const;
  void LookAhead();
  Watts Most() const;
  bool Eventful() const;
  void FindLevel(const Stretch& stretch, Watts before, Watts earlier);

  const EdgeLog& edges_;
  std::deque<Knot> knots_;
  std::deque<Stretch> pending_;
  Watts left_{0};  // The level at the end of what is settled.
  bool left_known_ = false;
  bool left_is_plateau_ = false;
  std::array<Watts, 2> before_{};  // Means of the last settled stretches that were observed.
  Watts latest_{0};
  Watts latest_but_one_{0};
  Watts latest_sigma_{0};
  // Where the present level is, if the last stretch differed from the one before: it may have
  // changed at any time in it, and have gone further than its mean tells.
  Watts level_low_{0};
  Watts level_high_{0};
  std::optional<Watts> ceiling_;
  // How often the load changed in a stretch with the edge of a window, of late: 0 to 1.
  double change_at_edges_ = 0;
  Seconds period_{0};  // Length of the last observed stretch.
  // The knowledge about the time after end(), whatever its length.
  struct Ahead {
    Watts level;
    double level_variance = 0;  // In W².
    bool eventful = false;
    Watts most;
    Watts excess_slope;  // Work that the sensor has not shown draws at most this power …
    Joules excess_cap;   // … and at most this energy.
    double changes_per_second = 0;
    double at_edge = 0;
  };
  Ahead ahead_;
  double end_swing_variance_ = 0;
  int counted_ = 0;        // Stretches from a counter so far.
  bool has_gaps_ = false;  // The sensor looks at a part of the time.
  Point at_end_;           // At end(): every window that ends asks for it.
  Variability variability_;
};

}  // namespace zeus
