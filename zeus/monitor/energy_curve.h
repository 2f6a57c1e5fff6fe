#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"
#include "zeus/monitor/edge_log.h"
#include "zeus/monitor/variability.h"

namespace zeus {

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
// the one instant that explains the mean) and from the edges of windows, where loads tend to
// change. Once settled the curve never changes, so the energies of windows that partition a period
// add up to the energy of the period. Beyond that it is extrapolated. One owner.
class EnergyCurve {
 public:
  // What is known about the energy up to an instant. Everything but edge_variance is cumulative.
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
    std::int64_t updates = 0;
  };

  // `edges` is where loads may change, and must outlive the curve.
  explicit EnergyCurve(const EdgeLog& edges) : edges_(edges) {}

  // Nothing is known before `begin`; `power` is the best guess until the first stretch is added.
  void Start(TimePoint begin, Watts power);
  bool started() const { return !knots_.empty(); }

  // Begins where the last stretch ended.
  void Add(const Stretch& stretch);

  // What happened before is forgotten.
  TimePoint remembered_since() const { return knots_.front().time; }
  TimePoint settled_until() const { return knots_.back().time; }
  TimePoint end() const { return pending_.empty() ? settled_until() : pending_.back().end; }
  // Exact for what is settled, extrapolated for the rest.
  Point At(TimePoint time) const;

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
    double timing_variance;
  };
  struct Piece {
    TimePoint end;
    Watts power;
  };
  // How the power went inside a stretch.
  struct Shape {
    std::vector<Piece> pieces;
    Watts doubt{0};   // How far the power may be off, where the pieces are a guess.
    Watts spread{0};  // Between the levels around it.
    bool last_level_known = true;
  };

  bool CanSettle() const;
  void Settle();
  Shape ShapeOfObserved(const Stretch& stretch) const;
  Shape ShapeOfGap(const Stretch& stretch) const;
  std::optional<Shape> StepBetweenPlateaus(const Stretch& stretch, Watts right) const;
  std::optional<Shape> ChangeAtEdges(const Stretch& stretch, std::optional<Watts> right,
                                     const EdgeLog::Inside& edges) const;
  void Append(const Stretch& stretch, const Shape& shape);
  Knot NextKnot(const Knot& from, const Piece& piece) const;

  // Of the observed stretches after the first pending one.
  const Stretch* NextObserved(std::size_t skip) const;
  // Of what was observed but is not settled.
  Point Provisional(TimePoint time) const;
  Point Extrapolate(TimePoint time) const;

  const EdgeLog& edges_;
  std::deque<Knot> knots_;
  std::deque<Stretch> pending_;
  Watts left_{0};  // The level at the end of what is settled.
  bool left_known_ = false;
  Watts latest_{0};
  Watts latest_sigma_{0};
  Point at_end_;  // At end(): every window that ends asks for it.
  Variability variability_;
};

}  // namespace zeus
