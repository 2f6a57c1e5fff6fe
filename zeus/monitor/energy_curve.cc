// A stretch is added at its end and waits as pending until its neighbours are known, because they
// decide its shape (CanSettle). An observed stretch whose mean lies between the levels around it is
// a step: the power changed at the one instant that gives the mean. Any other excess or lack is
// work or a pause at an unknown place, and the curve takes the mean over all places (placement.h).
// A gap, which no update covers, goes from the level before to the level after. Settling a stretch
// turns its shape into knots, points of energy with their variance, which never change again. What
// lies beyond the last knot is answered from the pending stretches (Provisional) and, after the
// last update, from the latest level and the swings that were seen of late (Extrapolate).
#include "zeus/monitor/energy_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "zeus/monitor/placement.h"

namespace zeus {
namespace {

// Settled history that is kept for windows whose edge has not been looked up yet.
constexpr std::size_t kKnots = 2048;

// Part of its power by which a steady load may swing unseen inside one stretch.
constexpr double kHiddenSwing = 0.025;
// Part of a stretch at each end in which a swing has not come to its full size.
constexpr double kSwingRamp = 0.1;

// Work that lies inside one stretch may draw this many times its mean over the stretch, if nothing
// is known about the device.
constexpr double kShortestWork = 10;
// An update that is not known yet may hold as much as the updates of late, in a shorter time.
constexpr double kShorterWork = 4;
// Changes by less than this part of the power are no events.
constexpr double kEventful = 0.1;
// Updates until it is known when they come.
constexpr int kUnsettledUpdates = 5;
// A change that the last stretch shows a part of is up to so many times as large.
constexpr double kLatestChange = 8;
// A neighbour that shows this part of a stretch's excess shows a part of the same work.
constexpr double kTouches = 0.25;
// How probable it is that work ended where the program waited for it.
constexpr double kTrustInWaiting = 0.85;

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

// A swing is pinned at both ends of a stretch only: 0 at both, 1 nearly everywhere.
double Plateau(TimePoint begin, TimePoint time, TimePoint end) {
  if (end <= begin) return 0;
  const double x = std::clamp((time - begin) / (end - begin), 0.0, 1.0);
  return std::min(1.0, std::min(x, 1.0 - x) / kSwingRamp);
}

}  // namespace

void EnergyCurve::Start(TimePoint begin, Watts power) {
  knots_.clear();
  pending_.clear();
  left_known_ = false;
  left_is_plateau_ = false;
  before_.fill(power);
  latest_ = latest_but_one_ = power;
  level_low_ = level_high_ = power;
  counted_ = 0;
  latest_sigma_ = power * kHiddenSwing;
  at_end_ = {};
  LookAhead();
  knots_.push_back({.time = begin,
                    .totals = {},
                    .power = power,
                    .observed = false,
                    .dark = false,
                    .begin = begin,
                    .end = begin,
                    .middle_variance = 0,
                    .swing_variance = 0,
                    .timing_variance = 0,
                    .place_sigma{},
                    .next_place_sigma{}});
}

void EnergyCurve::SetCeiling(Watts ceiling) {
  ceiling_ = ceiling;
  LookAhead();
}

void EnergyCurve::Add(const Stretch& stretch) {
  if (stretch.end <= stretch.begin) return;
  pending_.push_back(stretch);
  has_gaps_ |= stretch.kind == Stretch::Kind::kGap;
  if (stretch.kind == Stretch::Kind::kObserved) {
    const Watts before = std::exchange(latest_, stretch.power);
    period_ = stretch.end - stretch.begin;
    // When the first updates of a counter came is not known well, and so is its power then.
    if (!stretch.counted || ++counted_ > kUnsettledUpdates) variability_.Add(stretch.power);
    FindLevel(stretch, before, std::exchange(latest_but_one_, before));
    latest_sigma_ =
        Watts(std::hypot(kHiddenSwing * stretch.power.value(), variability_.Fast().value()));
  }
  while (CanSettle()) Settle();
  at_end_ = Provisional(end());
  if (stretch.kind == Stretch::Kind::kObserved)
    end_swing_variance_ = SwingVariance(stretch) +
                          Square((variability_.Beat() * (stretch.end - stretch.begin)).value()) / 8;
  LookAhead();
}

void EnergyCurve::FindLevel(const Stretch& stretch, Watts before, Watts earlier) {
  level_low_ = level_high_ = latest_;
  // Not knowing when an update came makes the power of a counter differ, too.
  Watts timing(0);
  if (stretch.counted) timing = latest_ * (2 * (stretch.end_sigma / period_));
  if (Distance(before, latest_) <= std::max(before * kEventful, timing)) return;
  const Watts change = latest_ - before;
  if (StrictlyBetween(earlier, before, latest_)) {
    // The stretch before was a mixture, and this one is where the load went.
    level_low_ = std::min(before, latest_ + change);
    level_high_ = std::max(before, latest_ + change);
    return;
  }
  // A load that keeps changing has shown how far it goes.
  const bool restless = variability_.ChangeRate() > 0.3;
  if (latest_ > before) {
    level_low_ = before;
    level_high_ = restless ? std::clamp(before + change * kLatestChange, latest_,
                                        variability_.Highest() * 1.1)
                           : latest_ + Most();
  } else {
    level_low_ = std::max(before + change * kLatestChange, variability_.Lowest());
    level_high_ = before;
  }
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
    case Stretch::Kind::kObserved: {
      const Stretch& first = pending_.front();
      const Stretch* next = NextObserved(0);
      if (next == nullptr) return false;
      // Whether the load stays where it went to tells a step from a burst.
      const bool may_be_step = left_is_plateau_ && StrictlyBetween(left_, first.power, next->power);
      return !may_be_step || NextObserved(1) != nullptr ||
             edges_.Between(first.begin, first.end).count == 0;
    }
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

// A load that goes from one level to another passes the mean at one instant only.
std::optional<EnergyCurve::Shape> EnergyCurve::StepBetween(const Stretch& stretch,
                                                           Watts right) const {
  if (!left_known_ || !StrictlyBetween(left_, stretch.power, right)) return std::nullopt;
  const double after = (stretch.power - left_) / (right - left_);
  const TimePoint step = stretch.end - (stretch.end - stretch.begin) * after;
  Shape shape;
  shape.pieces = {{.end = step, .power = left_}, {.end = stretch.end, .power = right}};
  shape.spread = Distance(left_, right);
  return shape;
}

bool EnergyCurve::NextIsPlateau() const {
  const Stretch* next = NextObserved(0);
  if (next == nullptr || edges_.Between(next->begin, next->end).count > 0) return false;
  const Stretch* second = NextObserved(1);
  if (second == nullptr || Distance(second->power, next->power) <= Tolerance(next->power))
    return true;
  // One whole stretch at this level, and the window ends in the one after it.
  return edges_.Between(second->begin, second->end).count > 0 &&
         StrictlyBetween(left_, second->power, next->power);
}

// Some work, or a pause, lies anywhere in the stretch: before or after the edges of windows in it.
// Neighbours that show a part of it tell on which side it is.
EnergyCurve::Shape EnergyCurve::ShapeOfPlaces(const Stretch& stretch) const {
  const Stretch* next = NextObserved(0);
  const Watts right = next != nullptr ? next->power : before_[0];
  const bool pause = stretch.power < std::min(before_[0], right);
  Excess excess{.begin = stretch.begin,
                .end = stretch.end,
                .power = stretch.power,
                .level = pause ? std::max(before_[0], right)
                               : std::min({before_[0], before_[1], right, stretch.power}),
                .extreme{}};
  const Watts height = stretch.power - excess.level;
  excess.extreme = std::max(excess.level + height * kShortestWork, Watts(0));
  if (ceiling_ && !pause) excess.extreme = std::max(*ceiling_, stretch.power + height * 0.05);
  const bool from_left = (before_[0] - excess.level) / height > kTouches;
  const bool to_right = (right - excess.level) / height > kTouches;
  if (from_left != to_right) {
    excess.at_begin = from_left ? 0.7 : 0.1;
    excess.at_end = from_left ? 0.1 : 0.7;
    excess.anywhere = 0.2;
  }
  if (!pause) excess.instants = edges_.WorkEndedBetween(stretch.begin, stretch.end);
  if (!excess.instants.empty()) {
    for (double* weight : {&excess.at_begin, &excess.at_end, &excess.anywhere})
      *weight *= 1 - kTrustInWaiting;
    excess.before_instants = kTrustInWaiting;
  }
  Shape shape;
  shape.ends_on_plateau = false;
  if (Watts(std::abs(height.value())) <= Tolerance(stretch.power)) {
    // Nothing to place: the change lies in the next stretch, or in the one before.
    shape.pieces = {{.end = stretch.end, .power = stretch.power}};
    return shape;
  }
  TimePoint time = stretch.begin;
  Joules energy(0);
  for (const PlacedPoint& point : Place(excess)) {
    shape.pieces.push_back({.end = point.time,
                            .power = (point.energy - energy) / (point.time - time),
                            .place_sigma = point.sigma});
    time = point.time;
    energy = point.energy;
  }
  shape.spread = Watts(std::abs(height.value()));
  shape.placed = true;
  return shape;
}

EnergyCurve::Shape EnergyCurve::ShapeOfObserved(const Stretch& stretch) const {
  const Stretch* next = NextObserved(0);
  const EdgeLog::Inside edges = edges_.Between(stretch.begin, stretch.end);
  Shape flat;
  flat.pieces = {{.end = stretch.end, .power = stretch.power}};
  if (left_known_) flat.spread = Distance(left_, stretch.power);
  if (next != nullptr) flat.spread = std::max(flat.spread, Distance(next->power, stretch.power));
  if (flat.spread <= Tolerance(stretch.power)) return flat;

  const auto near = [&](Watts level) {
    return Distance(level, stretch.power) <= Tolerance(stretch.power);
  };
  // All of the stretch belongs to the level before or after it: the change lies outside.
  const bool with_left = left_is_plateau_ && near(left_);
  const bool with_next =
      next != nullptr && near(next->power) && edges_.Between(next->begin, next->end).count == 0;
  if (with_left || with_next) return flat;
  if (next != nullptr && left_is_plateau_ && NextIsPlateau()) {
    if (auto step = StepBetween(stretch, next->power)) {
      // The neighbours are plateaus only if the load is not restless anyway.
      step->doubt = std::min(step->spread, variability_.Fast());
      return *std::move(step);
    }
  }
  if (edges.count > 0 && left_known_) return ShapeOfPlaces(stretch);
  if (next != nullptr) {
    if (auto step = StepBetween(stretch, next->power)) {
      step->doubt = step->spread * 0.5;
      step->ends_on_plateau = false;
      return *std::move(step);
    }
  }
  flat.doubt = flat.spread;
  flat.ends_on_plateau = false;
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
  knot.place_sigma = piece.place_sigma;
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
                          Square((variability_.Fast() * length).value() * Freedom());
  if (stretch.kind == Stretch::Kind::kGap)
    first.middle_variance += Square((variability_.Spikes() * length).value() * 0.9);
  first.swing_variance = SwingVariance(stretch);
  first.timing_variance =
      Square(((stretch.counted ? std::max(shape.spread, stretch.power) : shape.spread) *
              stretch.end_sigma)
                 .value()) +
      Square(stretch.end_doubt.value());
  first.place_sigma = Joules(0);

  for (const Piece& piece : shape.pieces) {
    if (piece.end <= knots_.back().time) continue;
    knots_.back().power = piece.power;
    knots_.back().next_place_sigma = piece.place_sigma;
    knots_.push_back(NextKnot(knots_.back(), piece));
  }
  Learn(stretch, shape);
  while (knots_.size() > kKnots) knots_.pop_front();
}

// How far a load may stray inside a stretch, in typical deviations of stretches: one that never
// stays where it is swings more than the means of its stretches tell.
double EnergyCurve::Freedom() const {
  return 0.25 + 0.5 * std::clamp((variability_.ChangeRate() - 0.75) / 0.2, 0.0, 1.0);
}

double EnergyCurve::SwingVariance(const Stretch& stretch) const {
  const Seconds length = stretch.end - stretch.begin;
  // The phase of a beat is anywhere.
  return Square(kHiddenSwing * (stretch.power * length).value()) +
         Square((variability_.Beat() * length).value()) / 7;
}

void EnergyCurve::Learn(const Stretch& stretch, const Shape& shape) {
  const Seconds length = stretch.end - stretch.begin;
  Knot& last = knots_.back();
  if (stretch.kind == Stretch::Kind::kObserved) {
    ++last.totals.updates;
    left_ = shape.pieces.back().power;
    left_known_ = true;
    left_is_plateau_ = shape.ends_on_plateau;
    before_ = {stretch.power, before_[0]};
    if (edges_.Between(stretch.begin, stretch.end).count == 0) return;
    const bool changed = shape.spread > Tolerance(stretch.power);
    change_at_edges_ += 0.2 * ((changed ? 1.0 : 0.0) - change_at_edges_);
  } else if (stretch.kind == Stretch::Kind::kGap) {
    // The load may have changed at any instant of the gap, and bursts may lie in it.
    last.totals.sampling_variance += Square((shape.doubt * length).value()) / 12 +
                                     Square((variability_.Spikes() * length).value()) * 0.5;
    last.totals.steps += shape.doubt * length / std::sqrt(12.0);
    if (variability_.Uneven() > Watts(0)) last.totals.uneven += length;
    AddDrift(last.totals, length);
  }
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
  point.edge_variance = knot.middle_variance * Square(Bridge(knot.begin, time, knot.end)) +
                        knot.swing_variance * Square(Plateau(knot.begin, time, knot.end)) +
                        knot.timing_variance;
  if (knot.place_sigma > Joules(0) || knot.next_place_sigma > Joules(0)) {
    const double part = after == knots_.end() ? 0.0 : past / (after->time - knot.time);
    const Joules sigma = knot.place_sigma + (knot.next_place_sigma - knot.place_sigma) * part;
    point.edge_variance += Square(sigma.value());
  }
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
    if (stretch.kind == Stretch::Kind::kGap) {
      // The load may have gone from the level before to the latest one at any instant.
      const Watts change = left_known_ ? latest_ - left_ : Watts(0);
      point.energy -= change * length / 2.0;
      point.edge_variance += Square((change * length).value()) / 12;
      AddDrift(point, length);
    }
    if (observed && stretch.end <= time) ++point.updates;
    if (stretch.end == time) point.edge_variance = Square(stretch.end_doubt.value());
    if (stretch.end > time) point.edge_variance += ProvisionalVariance(stretch, time);
    reached = std::min(stretch.end, time);
  }
  return point;
}

void EnergyCurve::AddDrift(Point& point, Seconds gap) const {
  if (!variability_.Drifting()) return;
  point.drifting += gap;
  point.drift += variability_.Uneven() * gap;
}

// In a stretch whose neighbours are not all known, a change may lie on either side of `time`.
double EnergyCurve::ProvisionalVariance(const Stretch& stretch, TimePoint time) const {
  const Seconds length = stretch.end - stretch.begin;
  const double x = (time - stretch.begin) / length;
  const Watts change =
      std::max(Distance(stretch.power, left_), Distance(stretch.power, before_[0]));
  return Square((change * length).value()) * std::max(x * (1 - x), 0.0) +
         SwingVariance(stretch) * Square(Plateau(stretch.begin, time, stretch.end));
}

// Every window that ends asks about the time since the last update: what does not depend on it is
// worked out once per update.
void EnergyCurve::LookAhead() {
  Watts restless = variability_.Fast() * (0.5 + 2 * Freedom());
  if (has_gaps_) restless = std::max(restless, variability_.Spikes() * 2.0);
  const bool eventful = Eventful();
  const double rate = variability_.ChangeRate();
  ahead_ = {
      .level = (level_low_ + level_high_) / 2.0,
      .level_variance = Square(restless.value()) + Square((level_high_ - level_low_).value()) / 12,
      .eventful = eventful,
      .most = Most(),
      .excess_slope = Most(),
      .excess_cap = Joules(std::numeric_limits<double>::infinity()),
      .changes_per_second = period_ > Seconds(0) ? rate / period_.count() : 0.0,
      // How much more often the load changes at edges than elsewhere.
      .at_edge = change_at_edges_ > rate ? (change_at_edges_ - rate) / (1 - rate) : 0.0};
  if (!eventful) return;
  ahead_.excess_slope = std::min(ahead_.excess_slope, variability_.Range() * kShorterWork);
  ahead_.excess_cap = variability_.Range() * period_ * 1.2;
}

EnergyCurve::Point EnergyCurve::Extrapolate(TimePoint time) const {
  const Seconds length = time - end();
  if (length <= Seconds(0)) return Provisional(time);
  // Since the last update nothing is known but the level before, and what became of it earlier.
  Point point = at_end_;
  point.energy += ahead_.level * length;
  point.edge_variance += ahead_.level_variance * Square(length.count()) + end_swing_variance_;
  if (has_gaps_) AddDrift(point, length);
  const bool window_began = edges_.AnyOfLate(end() - length, time);
  const bool awaited = edges_.WorkEndedAt(time);
  if (!ahead_.eventful && !window_began && !awaited) {
    point.hidden = ahead_.most * length;
    return point;
  }
  // As much as any update of late, at most; where nothing was seen, what the device can draw.
  const Joules excess = std::min(ahead_.excess_slope * length, ahead_.excess_cap);
  double at_edge = edges_.IsEdge(time) ? ahead_.at_edge : 0.0;
  if (awaited) at_edge = kTrustInWaiting;
  const double elsewhere =
      std::clamp(ahead_.changes_per_second * length.count(), window_began ? 0.5 : 0.0, 1.0);
  // At an edge the excess is anything up to the most; elsewhere a change goes up or down.
  point.energy += excess * (at_edge / 2);
  point.edge_variance +=
      Square(excess.value()) * (at_edge / 3 - Square(at_edge / 2) + (1 - at_edge) * elsewhere / 3);
  return point;
}

double EnergyCurve::HiddenWorkVariance(Joules energy, Seconds time, Seconds gap) const {
  // A device is idle when it could draw several times its power.
  constexpr double kIdle = 4;
  // The share of short pieces of work that fall into a gap as a whole.
  constexpr double kHiddenShare = 0.4;
  const Watts idle = variability_.Lowest();
  if (gap <= Seconds(0) || !ceiling_ || idle * kIdle > *ceiling_) return 0;
  const Joules most = (*ceiling_ - idle) * gap;
  const double seen = std::max((energy - idle * time) / most, 0.0);
  // The energy of hidden work is anything up to the most.
  return std::max(1 - seen, 0.0) * kHiddenShare * Square(most.value()) / 3;
}

// Whether the load changed at all of late.
bool EnergyCurve::Eventful() const {
  return variability_.ChangeRate() > 0 && variability_.Range() > latest_ * kEventful;
}

// By how much the power may be above the latest one.
Watts EnergyCurve::Most() const {
  return std::max(ceiling_.value_or(latest_ * 2.0) - latest_, Watts(0));
}

}  // namespace zeus
