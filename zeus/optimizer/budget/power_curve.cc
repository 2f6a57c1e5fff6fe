#include "zeus/optimizer/budget/power_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "zeus/base/quantity_text.h"

namespace zeus::water_filling {

namespace {

// Measurements without a sigma count as if they had this one, relative to their value.
constexpr double kUnknownSigma = 0.02;
// Measurements that contradict each other by less than this, relative, are not worth a sentence.
constexpr double kNegligible = 0.02;

struct Measured {
  double value;
  double weight;  // 1 / variance.
};

double Sigma(const Measured& measured) { return 1 / std::sqrt(measured.weight); }

// The smallest sigma, relative: a weight stays finite where a value is exact.
constexpr double kExactSigma = 1e-6;

Measured WithWeight(double value, std::optional<double> sigma) {
  const double used = std::max(sigma.value_or(kUnknownSigma * value), kExactSigma * value);
  return {.value = value, .weight = 1 / (used * used)};
}

Measured TimeOf(const CurveSample& sample) {
  return WithWeight(sample.time.count(),
                    sample.time_sigma ? std::optional(sample.time_sigma->count()) : std::nullopt);
}

Measured DrawOf(const CurveSample& sample) {
  return WithWeight(sample.draw.value_or(sample.limit).value(),
                    sample.draw_sigma ? std::optional(sample.draw_sigma->value()) : std::nullopt);
}

Measured Mean(const Measured& one, const Measured& other) {
  const double weight = one.weight + other.weight;
  return {.value = (one.value * one.weight + other.value * other.weight) / weight,
          .weight = weight};
}

// Returns the nearest values, in weighted least squares, that never fall: neighbours that do are
// pooled until none does (pool adjacent violators).
std::vector<Measured> NeverFalling(const std::vector<Measured>& measured) {
  struct Pool {
    Measured mean;
    std::size_t count;
  };
  std::vector<Pool> pools;
  for (const Measured& value : measured) {
    pools.push_back({.mean = value, .count = 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean.value > pools.back().mean.value) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back() = {.mean = Mean(pools.back().mean, last.mean),
                      .count = pools.back().count + last.count};
    }
  }
  std::vector<Measured> values;
  for (const Pool& pool : pools) values.insert(values.end(), pool.count, pool.mean);
  return values;
}

std::vector<Measured> NeverRising(std::vector<Measured> measured) {
  std::ranges::reverse(measured);
  measured = NeverFalling(measured);
  std::ranges::reverse(measured);
  return measured;
}

// Times and draws by ascending limit, one of each for a limit.
struct Table {
  std::vector<double> limits{};
  std::vector<Measured> times{};
  std::vector<Measured> draws{};
};

bool Positive(double value) { return std::isfinite(value) && value > 0; }
bool NotNegative(double value) { return std::isfinite(value) && value >= 0; }

Status CheckSample(const CurveSample& sample) {
  if (!Positive(sample.limit.value()))
    return InvalidArgument(fmt::format(
        "a profile has a power limit of {} W: it must be a positive number", sample.limit.value()));
  const std::string at = "the profile at " + PowerText(sample.limit) + " ";
  if (!Positive(sample.time.count()))
    return InvalidArgument(
        fmt::format("{}has a time of {} s: it must be a positive number", at, sample.time.count()));
  if (sample.time_sigma && !NotNegative(sample.time_sigma->count()))
    return InvalidArgument(fmt::format("{}has a time uncertainty of {} s: it must be 0 or more", at,
                                       sample.time_sigma->count()));
  if (sample.draw && !Positive(sample.draw->value()))
    return InvalidArgument(fmt::format("{}has a draw of {} W: it must be a positive number", at,
                                       sample.draw->value()));
  if (sample.draw_sigma && !NotNegative(sample.draw_sigma->value()))
    return InvalidArgument(fmt::format("{}has a draw uncertainty of {} W: it must be 0 or more", at,
                                       sample.draw_sigma->value()));
  return Ok();
}

Table TableOf(std::vector<CurveSample> samples) {
  std::ranges::stable_sort(samples, {}, &CurveSample::limit);
  Table table;
  for (const CurveSample& sample : samples) {
    const Measured time = TimeOf(sample);
    const Measured draw = DrawOf(sample);
    if (!table.limits.empty() && table.limits.back() == sample.limit.value()) {
      table.times.back() = Mean(table.times.back(), time);
      table.draws.back() = Mean(table.draws.back(), draw);
    } else {
      table.limits.push_back(sample.limit.value());
      table.times.push_back(time);
      table.draws.push_back(draw);
    }
  }
  return table;
}

// Whether `high` is above `low` by more than both are uncertain.
bool Above(const Measured& high, const Measured& low) {
  return high.value > low.value * (1 + kNegligible) &&
         high.value > low.value + 3 * std::hypot(Sigma(high), Sigma(low));
}

// Describes the worst place where a higher limit made the job slower.
std::optional<std::string> BackwardsNote(const Table& table) {
  std::size_t fastest = 0;  // Before the present point.
  std::optional<std::pair<std::size_t, std::size_t>> worst;
  double worst_ratio = 1;
  for (std::size_t i = 1; i < table.limits.size(); ++i) {
    const double ratio = table.times[i].value / table.times[fastest].value;
    if (Above(table.times[i], table.times[fastest]) && ratio > worst_ratio) {
      worst = {fastest, i};
      worst_ratio = ratio;
    }
    if (table.times[i].value < table.times[fastest].value) fastest = i;
  }
  if (!worst) return std::nullopt;
  return fmt::format(
      "the profile goes backwards: at {} the job takes {:.2f} times as long as at {}, which is "
      "more than its noise; it counts as equally fast there, so profile it again",
      PowerText(Watts(table.limits[worst->second])), worst_ratio,
      PowerText(Watts(table.limits[worst->first])));
}

// Describes the worst place where the draw is above the limit.
std::optional<std::string> OverdrawNote(const Table& table) {
  std::optional<std::size_t> worst;
  double worst_ratio = 1.05;  // Drivers enforce a limit to some per cent.
  for (std::size_t i = 0; i < table.limits.size(); ++i) {
    const Measured& draw = table.draws[i];
    const double ratio = draw.value / table.limits[i];
    if (ratio > worst_ratio && draw.value > table.limits[i] + 3 * Sigma(draw)) {
      worst = i;
      worst_ratio = ratio;
    }
  }
  if (!worst) return std::nullopt;
  return fmt::format(
      "the profile draws {} under a limit of {}: either the limit is not enforced there, or the "
      "reading is wrong",
      PowerText(Watts(table.draws[*worst].value)), PowerText(Watts(table.limits[*worst])));
}

// Returns how far `at` is from `low` to `high`, 0 to 1.
double Share(double low, double high, double at) {
  return high > low ? std::clamp((at - low) / (high - low), 0.0, 1.0) : 0.0;
}

// The slowdown of a job at a limit that is this share of its natural draw, and the draw then as a
// share of the natural one: means over the recorded curves of the Zeus paper (NSDI '23, four GPU
// models) that were measured there. Even above 1 a limit costs speed, because draw is a mean.
struct Shape {
  double limit;
  double slowdown;
  double draw;
};
constexpr std::array<Shape, 11> kShape{{{0.4, 3.42, 0.41},
                                        {0.5, 1.95, 0.50},
                                        {0.6, 1.51, 0.57},
                                        {0.65, 1.355, 0.61},
                                        {0.7, 1.249, 0.65},
                                        {0.75, 1.172, 0.69},
                                        {0.8, 1.123, 0.73},
                                        {0.9, 1.063, 0.80},
                                        {1.0, 1.037, 0.87},
                                        {1.1, 1.020, 0.93},
                                        {1.3, 1.0, 1.0}}};
// A job of which nothing is known wants this share of the highest limit: more than two thirds of
// the recorded ones did, and starving an unknown job is worse than wasting a watt on it.
constexpr double kUnknownDraw = 0.8;

}  // namespace

Result<PowerCurve> PowerCurve::FromSamples(std::span<const CurveSample> samples) {
  if (samples.empty()) return InvalidArgument("a profile without measurements has no power curve");
  for (const CurveSample& sample : samples) ZEUS_RETURN_IF_ERROR(CheckSample(sample));
  const Table table = TableOf({samples.begin(), samples.end()});
  const std::vector<Measured> times = NeverRising(table.times);
  const std::vector<Measured> draws = NeverFalling(table.draws);
  PowerCurve curve;
  for (std::size_t i = 0; i < table.limits.size(); ++i) {
    curve.points_.push_back({.limit = Watts(table.limits[i]),
                             .slowdown = times[i].value / times.back().value,
                             .draw = Watts(draws[i].value),
                             .draw_sigma = Watts(Sigma(draws[i]))});
  }
  // The bound of the draw must not fall either: a lower limit would seem to draw more.
  for (std::size_t i = 1; i < curve.points_.size(); ++i) {
    CurvePoint& point = curve.points_[i];
    const CurvePoint& before = curve.points_[i - 1];
    const Watts bound = before.draw + 2 * before.draw_sigma;
    point.draw_sigma = std::max(point.draw_sigma, (bound - point.draw) / 2);
  }
  if (auto note = BackwardsNote(table)) curve.notes_.push_back(*std::move(note));
  if (auto note = OverdrawNote(table)) curve.notes_.push_back(*std::move(note));
  return curve;
}

Result<PowerCurve> PowerCurve::Assumed(const Unknown& gpu) {
  if (!Positive(gpu.lowest.value()) || !Positive(gpu.highest.value()) || gpu.highest < gpu.lowest)
    return InvalidArgument(fmt::format("power limits from {} W to {} W are no range",
                                       gpu.lowest.value(), gpu.highest.value()));
  Watts wanted = kUnknownDraw * gpu.highest;
  if (gpu.limit && gpu.draw && Positive(gpu.limit->value()) && Positive(gpu.draw->value()))
    wanted = *gpu.draw < 0.95 * *gpu.limit ? *gpu.draw : std::max(*gpu.limit, wanted);
  std::vector<double> limits{gpu.lowest.value(), gpu.highest.value()};
  for (const Shape& shape : kShape) limits.push_back(shape.limit * wanted.value());
  std::erase_if(limits, [&](double limit) {
    return limit < gpu.lowest.value() || limit > gpu.highest.value();
  });
  std::ranges::sort(limits);
  limits.erase(std::ranges::unique(limits).begin(), limits.end());
  std::vector<CurveSample> samples;
  for (const double limit : limits) {
    const double at = std::clamp(limit / wanted.value(), kShape.front().limit, kShape.back().limit);
    const auto above = std::ranges::lower_bound(kShape, at, {}, &Shape::limit);
    const auto below = above == kShape.begin() ? above : std::prev(above);
    const double share = Share(below->limit, above->limit, at);
    samples.push_back(
        {.limit = Watts(limit),
         .time = Seconds(std::lerp(below->slowdown, above->slowdown, share)),
         .draw = std::min(Watts(limit), std::lerp(below->draw, above->draw, share) * wanted)});
  }
  auto curve = FromSamples(samples);
  if (curve.ok()) curve.value().assumed_ = true;
  return curve;
}

namespace {

// A place between two points of a curve.
struct Place {
  const CurvePoint& below;
  const CurvePoint& above;
  double share;  // 0 at `below`, 1 at `above`.
};

Place PlaceOf(const std::vector<CurvePoint>& points, Watts limit) {
  const auto above = std::ranges::lower_bound(points, limit, {}, &CurvePoint::limit);
  if (above == points.end()) return {points.back(), points.back(), 0};
  if (above == points.begin()) return {points.front(), points.front(), 0};
  const CurvePoint& below = *std::prev(above);
  return {below, *above, Share(below.limit.value(), above->limit.value(), limit.value())};
}

}  // namespace

CurvePoint PowerCurve::At(Watts limit) const {
  const Place place = PlaceOf(points_, limit);
  const auto between = [&](Watts CurvePoint::*field) {
    return Watts(
        std::lerp((place.below.*field).value(), (place.above.*field).value(), place.share));
  };
  return {.limit = limit,
          .slowdown = std::lerp(place.below.slowdown, place.above.slowdown, place.share),
          .draw = between(&CurvePoint::draw),
          .draw_sigma = between(&CurvePoint::draw_sigma)};
}

double PowerCurve::SlowdownAt(Watts limit) const { return At(limit).slowdown; }

Watts PowerCurve::DrawAt(Watts limit) const { return At(limit).draw; }

Watts PowerCurve::DrawBoundAt(Watts limit) const {
  const CurvePoint point = At(limit);
  return point.draw + 2 * point.draw_sigma;
}

std::optional<Watts> PowerCurve::LimitFor(double slowdown) const {
  const auto enough = std::ranges::find_if(
      points_, [&](const CurvePoint& point) { return point.slowdown <= slowdown; });
  if (enough == points_.end()) return std::nullopt;
  if (enough == points_.begin()) return enough->limit;
  const CurvePoint& below = *std::prev(enough);
  const double share = Share(-below.slowdown, -enough->slowdown, -slowdown);
  return Watts(std::lerp(below.limit.value(), enough->limit.value(), share));
}

}  // namespace zeus::water_filling
