#include "zeus/monitor/energy_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace zeus {
namespace {

// Settled history that is kept for windows whose edge has not been looked up yet.
constexpr std::size_t kKnots = 2048;

// Part of its power by which a steady load may swing unseen inside one stretch.
constexpr double kHiddenSwing = 0.033;

double Square(double value) { return value * value; }
Watts Distance(Watts a, Watts b) { return Watts(std::abs((a - b).value())); }
Watts Tolerance(Watts power) { return Watts(0.5 + 0.01 * power.value()); }

bool StrictlyBetween(Watts a, Watts middle, Watts b) {
  const Watts tolerance = Tolerance(std::max(a, b));
  return (middle > a + tolerance && middle < b - tolerance) ||
         (middle < a - tolerance && middle > b + tolerance);
}

// A bridge between two known ends is freest in the middle: 0 at both, 1 half way.
double Bridge(TimePoint begin, TimePoint time, TimePoint end) {
  if (end <= begin) return 0;
  const double x = std::clamp((time - begin) / (end - begin), 0.0, 1.0);
  return 4.0 * x * (1.0 - x);
}

}  // namespace

void EnergyCurve::Start(TimePoint begin, Watts power) {
  knots_.clear();
  pending_.clear();
  left_known_ = false;
  latest_ = power;
  latest_sigma_ = power * kHiddenSwing;
  at_end_ = {};
  knots_.push_back({.time = begin,
                    .totals = {},
                    .power = power,
                    .observed = false,
                    .dark = false,
                    .begin = begin,
                    .end = begin,
                    .middle_variance = 0,
                    .timing_variance = 0});
}

void EnergyCurve::Add(const Stretch& stretch) {
  if (stretch.end <= stretch.begin) return;
  pending_.push_back(stretch);
  if (stretch.kind == Stretch::Kind::kObserved) {
    latest_ = stretch.power;
    variability_.Add(stretch.power);
    latest_sigma_ =
        Watts(std::hypot(kHiddenSwing * stretch.power.value(), variability_.Fast().value()));
  }
  while (CanSettle()) Settle();
  at_end_ = Provisional(end());
}

const Stretch* EnergyCurve::NextObserved(std::size_t skip) const {
  for (std::size_t i = 1; i < pending_.size(); ++i) {
    if (pending_[i].kind != Stretch::Kind::kObserved) continue;
    if (skip == 0) return &pending_[i];
    --skip;
  }
  return nullptr;
}

bool EnergyCurve::CanSettle() const {
  if (pending_.empty()) return false;
  const bool no_more_to_come = pending_.back().kind == Stretch::Kind::kDark;
  if (no_more_to_come) return true;
  switch (pending_.front().kind) {
    case Stretch::Kind::kObserved:
      return NextObserved(0) != nullptr;
    case Stretch::Kind::kGap:
      return NextObserved(1) != nullptr;
    case Stretch::Kind::kDark:
      return true;
  }
  return true;
}

void EnergyCurve::Settle() {
  const Stretch stretch = pending_.front();
  Shape shape;
  switch (stretch.kind) {
    case Stretch::Kind::kObserved:
      shape = ShapeOfObserved(stretch);
      break;
    case Stretch::Kind::kGap:
      shape = ShapeOfGap(stretch);
      break;
    case Stretch::Kind::kDark:
      shape.pieces = {{.end = stretch.end, .power = Watts(0)}};
      break;
  }
  pending_.pop_front();
  Append(stretch, shape);
}

// A load that goes from one plateau to another passes the mean at one instant only.
std::optional<EnergyCurve::Shape> EnergyCurve::StepBetweenPlateaus(const Stretch& stretch,
                                                                   Watts right) const {
  if (!left_known_ || !StrictlyBetween(left_, stretch.power, right)) return std::nullopt;
  const double after = (stretch.power - left_) / (right - left_);
  const TimePoint step = stretch.end - (stretch.end - stretch.begin) * after;
  Shape shape;
  shape.pieces = {{.end = step, .power = left_}, {.end = stretch.end, .power = right}};
  shape.spread = Distance(left_, right);
  // The neighbours are plateaus only if the load is not restless anyway.
  shape.doubt = std::min(shape.spread, variability_.Fast());
  return shape;
}

// The load changes at the edges of windows: the first piece goes on as before, the last one goes
// over to what follows, and what lies between takes the rest of the energy.
std::optional<EnergyCurve::Shape> EnergyCurve::ChangeAtEdges(const Stretch& stretch,
                                                             std::optional<Watts> right,
                                                             const EdgeLog::Inside& edges) const {
  if (!left_known_ || edges.count == 0) return std::nullopt;
  const bool last_is_given = right.has_value() && edges.count > 1;
  const TimePoint free_begin = edges.first;
  const TimePoint free_end = last_is_given ? edges.last : stretch.end;
  const Seconds length = stretch.end - stretch.begin;
  const Seconds free = free_end - free_begin;
  if (free < 0.1 * length) return std::nullopt;  // Too short to carry the rest.

  Joules rest = stretch.power * length - left_ * (free_begin - stretch.begin);
  if (last_is_given) rest -= *right * (stretch.end - free_end);
  const Watts middle = rest / free;
  if (middle < Watts(0)) return std::nullopt;
  Shape shape;
  shape.pieces = {{.end = free_begin, .power = left_}, {.end = free_end, .power = middle}};
  if (last_is_given) shape.pieces.push_back({.end = stretch.end, .power = *right});
  shape.spread = Distance(left_, middle);
  shape.doubt = shape.spread * 0.25;
  shape.last_level_known = last_is_given || free > 0.3 * length;
  return shape;
}

EnergyCurve::Shape EnergyCurve::ShapeOfObserved(const Stretch& stretch) const {
  const Stretch* next = NextObserved(0);
  const EdgeLog::Inside edges = edges_.Between(stretch.begin, stretch.end);
  std::optional<Watts> right;
  // A stretch in which windows begin or end is no plateau.
  if (next != nullptr && edges_.Between(next->begin, next->end).count == 0) right = next->power;

  Shape flat;
  flat.pieces = {{.end = stretch.end, .power = stretch.power}};
  if (left_known_) flat.spread = Distance(left_, stretch.power);
  if (next != nullptr) flat.spread = std::max(flat.spread, Distance(next->power, stretch.power));
  flat.doubt = flat.spread;
  if (flat.spread <= Tolerance(stretch.power)) return flat;

  if (right) {
    if (auto step = StepBetweenPlateaus(stretch, *right)) return *std::move(step);
  }
  if (auto change = ChangeAtEdges(stretch, right, edges)) return *std::move(change);
  if (next != nullptr && edges.count == 0) {
    if (auto step = StepBetweenPlateaus(stretch, next->power)) {
      step->doubt = step->spread * 0.5;
      return *std::move(step);
    }
  }
  return flat;
}

// Nothing was seen here. The level before goes over to the level after: inside the next observed
// stretch if that one shows a mixture, at the edge of a window if there is one, else half way.
EnergyCurve::Shape EnergyCurve::ShapeOfGap(const Stretch& stretch) const {
  const Stretch* next = NextObserved(0);
  const Stretch* second = NextObserved(1);
  const Watts left = left_known_ || next == nullptr ? left_ : next->power;
  Shape shape;
  if (next == nullptr || (second != nullptr && StrictlyBetween(left, next->power, second->power))) {
    shape.pieces = {{.end = stretch.end, .power = left}};
    if (next != nullptr) shape.spread = Distance(left, next->power);
    shape.doubt = shape.spread * 0.5;
    return shape;
  }
  const EdgeLog::Inside edges = edges_.Between(stretch.begin, stretch.end);
  const TimePoint change =
      edges.count == 1 ? edges.first : stretch.begin + (stretch.end - stretch.begin) / 2;
  shape.pieces = {{.end = change, .power = left}, {.end = stretch.end, .power = next->power}};
  shape.spread = Distance(left, next->power);
  shape.doubt = edges.count == 1 ? shape.spread * 0.5 : shape.spread;
  return shape;
}

EnergyCurve::Knot EnergyCurve::NextKnot(const Knot& from, const Piece& piece) const {
  Knot knot = from;
  const Seconds length = piece.end - from.time;
  knot.time = piece.end;
  knot.totals.energy += piece.power * length;
  if (from.observed) {
    knot.totals.observed += length;
  } else {
    knot.totals.unseen += piece.power * length;
  }
  if (from.dark) knot.totals.dark += length;
  return knot;
}

void EnergyCurve::Append(const Stretch& stretch, const Shape& shape) {
  const Seconds length = stretch.end - stretch.begin;
  Knot& first = knots_.back();
  first.begin = stretch.begin;
  first.end = stretch.end;
  first.observed = stretch.kind == Stretch::Kind::kObserved;
  first.dark = stretch.kind == Stretch::Kind::kDark;
  // Doubt of D about the level on one side moves the middle of the bridge by D * length / 4 if the
  // stretch as a whole is known, by more if not.
  const double freedom = stretch.kind == Stretch::Kind::kGap ? 0.4 : 0.3;
  first.middle_variance = Square((shape.doubt * length).value() * freedom) +
                          Square((variability_.Fast() * length).value() * 0.6) +
                          Square(kHiddenSwing * (stretch.power * length).value());
  first.timing_variance =
      Square(((stretch.counted ? std::max(shape.spread, stretch.power) : shape.spread) *
              stretch.end_sigma)
                 .value()) +
      Square(stretch.end_doubt.value());

  for (const Piece& piece : shape.pieces) {
    if (piece.end <= knots_.back().time) continue;
    knots_.back().power = piece.power;
    knots_.push_back(NextKnot(knots_.back(), piece));
  }
  Knot& last = knots_.back();
  if (stretch.kind == Stretch::Kind::kObserved) {
    ++last.totals.updates;
    left_ = shape.pieces.back().power;
    left_known_ = shape.last_level_known;
  } else if (stretch.kind == Stretch::Kind::kGap) {
    // A uniformly distributed instant of change.
    last.totals.sampling_variance += Square((shape.doubt * length).value()) / 12;
    const Watts unseen = variability_.Uneven();
    if (unseen > Watts(0)) last.totals.uneven += length;
    if (variability_.Drifting()) {
      last.totals.drifting += length;
      last.totals.drift += unseen * length;
    }
  }
  while (knots_.size() > kKnots) knots_.pop_front();
}

EnergyCurve::Point EnergyCurve::At(TimePoint time) const {
  if (time > settled_until()) return Extrapolate(time);
  const auto after = std::ranges::upper_bound(knots_, time, {}, &Knot::time);
  if (after == knots_.begin()) return knots_.front().totals;  // Before anything is known.
  const Knot& knot = *std::prev(after);
  const Seconds past = time - knot.time;
  Point point = knot.totals;
  point.energy += knot.power * past;
  if (knot.observed) {
    point.observed += past;
  } else {
    point.unseen += knot.power * past;
  }
  if (knot.dark) point.dark += past;
  point.edge_variance =
      knot.middle_variance * Square(Bridge(knot.begin, time, knot.end)) + knot.timing_variance;
  return point;
}

EnergyCurve::Point EnergyCurve::Provisional(TimePoint time) const {
  Point point = knots_.back().totals;
  TimePoint reached = knots_.back().time;
  for (const Stretch& stretch : pending_) {
    if (reached >= time) break;
    const Seconds length = std::min(stretch.end, time) - reached;
    const bool observed = stretch.kind == Stretch::Kind::kObserved;
    point.energy += (observed ? stretch.power : latest_) * length;
    if (observed) point.observed += length;
    if (observed && stretch.end <= time) ++point.updates;
    if (stretch.end > time)
      point.edge_variance += Square((Distance(stretch.power, left_) * length).value()) +
                             Square(kHiddenSwing * (stretch.power * length).value());
    reached = std::min(stretch.end, time);
  }
  return point;
}

EnergyCurve::Point EnergyCurve::Extrapolate(TimePoint time) const {
  const Seconds length = time - end();
  if (length <= Seconds(0)) return Provisional(time);
  // Since the last update nothing is known but the level before.
  Point point = at_end_;
  point.energy += latest_ * length;
  Watts doubt = power_sigma();
  const bool changed = edges_.AnyOfLate(end() - length, time);
  if (changed || !left_known_) doubt += std::max(variability_.Range(), latest_) * 0.5;
  point.edge_variance += Square((doubt * length).value());
  return point;
}

}  // namespace zeus
