// Points that another one beats in time and in effective energy are dropped; the lower convex hull
// of the rest, or samples of a fitted exponential, are the breakpoints of the cost. Times become
// whole ticks and slopes whole multiples of a unit, which is so large that the steepest slopes of
// all computations together stay below 2^60 and else as small as possible. After this rounding
// everything is exact.
#include "zeus/optimizer/pipeline/convex_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::pipeline {

namespace {

// If only few points would be left, a point must be beaten by this share to be dropped: among noisy
// measurements on a plateau, nearly every point is beaten by a little.
constexpr double kNoise = 0.05;
constexpr std::size_t kFewCandidates = 3;

struct Option {
  double time = 0;
  double filtered_by = 0;  // Measured or effective energy, by ParetoFilter.
  FitCandidate candidate{};
};

std::vector<Option> MakeOptions(const ComputationKind& kind, Watts blocking_power, Seconds quantum,
                                ParetoFilter filter) {
  const Watts blocked = kind.beside_the_stage ? Watts{} : blocking_power;
  std::vector<Option> options;
  for (const OperatingPoint& point : kind.points) {
    const auto quanta = static_cast<std::int64_t>(std::floor(point.time / quantum));
    const Joules cost = point.energy - blocked * (quantum * static_cast<double>(quanta));
    const Joules decisive = filter == ParetoFilter::kMeasured ? point.energy : cost;
    options.push_back({.time = point.time.count(),
                       .filtered_by = decisive.value(),
                       .candidate = {.quanta = quanta, .cost = cost}});
  }
  return options;
}

bool Beaten(const Option& option, const std::vector<Option>& options, double allowance) {
  const double time = option.time - allowance * option.time;
  const double energy = option.filtered_by - allowance * std::abs(option.filtered_by);
  return std::ranges::any_of(options, [&](const Option& other) {
    return other.time < time && other.filtered_by < energy;
  });
}

// Returns the points that no other one beats. Among several points within one quantum the most
// expensive one stays: its time is nearest to the quantum's beginning, which is the time that the
// model gives to all of them.
std::vector<FitCandidate> Unbeaten(const std::vector<Option>& options, double allowance) {
  std::map<std::int64_t, Joules> dearest;
  for (const Option& option : options) {
    if (Beaten(option, options, allowance)) continue;
    const auto [entry, is_new] =
        dearest.try_emplace(option.candidate.quanta, option.candidate.cost);
    if (!is_new) entry->second = std::max(entry->second, option.candidate.cost);
  }
  std::vector<FitCandidate> candidates;
  for (const auto& [quanta, cost] : dearest) candidates.push_back({.quanta = quanta, .cost = cost});
  return candidates;
}

// The curve start + drop * Basis(decay, x), with x from 0 at the shortest candidate to 1 at the
// longest.
struct FittedCurve {
  double decay = 0;
  double drop = 0;
  double start = 0;
  double error = std::numeric_limits<double>::infinity();
};

// (exp(-decay * x) - 1) / decay, which approaches the line -x as decay approaches 0, without loss
// of digits.
double Basis(double decay, double x) { return std::expm1(-decay * x) / decay; }

// Fits `drop` and `start` for a given decay, by linear least squares.
FittedCurve BestWithDecay(double decay, std::span<const double> x, std::span<const double> y) {
  const auto count = static_cast<double>(x.size());
  double mean_basis = 0;
  double mean_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_basis += Basis(decay, x[i]) / count;
    mean_y += y[i] / count;
  }
  double product = 0;
  double square = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double basis = Basis(decay, x[i]) - mean_basis;
    product += basis * (y[i] - mean_y);
    square += basis * basis;
  }
  FittedCurve curve{.decay = decay, .drop = std::max(0.0, product / square), .error = 0};
  curve.start = mean_y - curve.drop * mean_basis;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double miss = curve.start + curve.drop * Basis(decay, x[i]) - y[i];
    curve.error += miss * miss;
  }
  return curve;
}

// Golden-section search over the logarithm of the decay.
FittedCurve Refine(FittedCurve best, double lowest, double highest, std::span<const double> x,
                   std::span<const double> y) {
  constexpr double kGolden = 0.6180339887498949;
  constexpr int kSteps = 60;  // Shrinks the bracket below the precision of a double.
  double low = std::log(lowest);
  double high = std::log(highest);
  for (int step = 0; step < kSteps; ++step) {
    const double reach = kGolden * (high - low);
    const FittedCurve left = BestWithDecay(std::exp(high - reach), x, y);
    const FittedCurve right = BestWithDecay(std::exp(low + reach), x, y);
    for (const FittedCurve& curve : {left, right})
      if (curve.error < best.error) best = curve;
    (left.error < right.error ? high : low) = left.error < right.error ? low + reach : high - reach;
  }
  return best;
}

// The error may have several minima over the decay, so the whole range is searched coarsely and the
// best of it refined. Among equals the gentlest decay wins: two candidates fit every curve.
FittedCurve BestCurve(double sharpest, std::span<const double> x, std::span<const double> y) {
  constexpr double kGentlest = 1e-6;  // Practically a line; a and c still have enough digits.
  constexpr int kDecays = 160;
  const double ratio = std::pow(std::max(sharpest, 2 * kGentlest) / kGentlest, 1.0 / kDecays);
  FittedCurve best;
  for (int i = 0; i <= kDecays; ++i) {
    const FittedCurve curve = BestWithDecay(kGentlest * std::pow(ratio, i), x, y);
    if (i == 0 || curve.error < best.error * (1 - 1e-9) - 1e-18) best = curve;
  }
  return Refine(best, std::max(kGentlest, best.decay / ratio), best.decay * ratio, x, y);
}

// Returns the sharpest decay to try: at it the exponential vanishes at the longest candidate. It is
// limited so that the model's `a`, the height at zero quanta, does not overflow.
double SharpestDecay(const std::vector<FitCandidate>& candidates) {
  constexpr double kVanishing = 40;
  constexpr double kLargestExponent = 600;
  const auto shortest = static_cast<double>(candidates.front().quanta);
  const auto span = static_cast<double>(candidates.back().quanta) - shortest;
  return std::min(kVanishing * span, kLargestExponent * span / std::max(shortest, 1.0));
}

std::string Name(const ComputationKind& kind) {
  return fmt::format("{} of stage {}", kind.instruction, kind.stage);
}

}  // namespace

std::vector<FitCandidate> FitCandidates(const ComputationKind& kind, Watts blocking_power,
                                        Seconds quantum, ParetoFilter filter) {
  const std::vector<Option> options = MakeOptions(kind, blocking_power, quantum, filter);
  std::vector<FitCandidate> candidates = Unbeaten(options, 0);
  if (candidates.size() > kFewCandidates) return candidates;
  return Unbeaten(options, kNoise);
}

Result<ExponentialModel> FitExponential(const ComputationKind& kind, Watts blocking_power,
                                        Seconds quantum, ParetoFilter filter) {
  const std::vector<FitCandidate> candidates = FitCandidates(kind, blocking_power, quantum, filter);
  if (candidates.empty())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("no measurement of {}: add it to the profile", Name(kind))};
  const std::int64_t shortest = candidates.front().quanta;
  const std::int64_t longest = candidates.back().quanta;
  if (shortest == longest)
    return ExponentialModel{
        .a = 0, .b = -1, .c = candidates.front().cost.value(), .min = shortest, .max = longest};

  const auto span = static_cast<double>(longest - shortest);
  std::vector<double> x;
  std::vector<double> y;
  for (const FitCandidate& candidate : candidates) {
    x.push_back(static_cast<double>(candidate.quanta - shortest) / span);
    y.push_back(candidate.cost.value());
  }
  const FittedCurve curve = BestCurve(SharpestDecay(candidates), x, y);
  if (!(curve.drop > 0) || !std::isfinite(curve.error))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the energy of {} does not fall with its time, so no exponential fits "
                             "it: measure it at more clocks, or plan on the hull",
                             Name(kind))};
  const double b = -curve.decay / span;
  const double height = curve.drop / curve.decay;
  return ExponentialModel{.a = height * std::exp(-b * static_cast<double>(shortest)),
                          .b = b,
                          .c = curve.start - height,
                          .min = shortest,
                          .max = longest};
}

double SquaredError(const ExponentialModel& model, const std::vector<FitCandidate>& candidates) {
  double error = 0;
  for (const FitCandidate& candidate : candidates) {
    const double miss = model.a * std::exp(model.b * static_cast<double>(candidate.quanta)) +
                        model.c - candidate.cost.value();
    error += miss * miss;
  }
  return error;
}

namespace {

// A curve before its slopes are rounded to integers.
struct Curve {
  std::vector<Ticks> times{};
  std::vector<double> costs{};  // Joules.

  double SlopeBefore(std::size_t k) const {
    return (costs[k - 1] - costs[k]) / static_cast<double>(times[k] - times[k - 1]);
  }
};

constexpr double kMicroseconds = 1e6;  // Per second.
constexpr Ticks kMostQuanta = 1'000'000;

Curve LowerHull(std::vector<std::pair<Ticks, double>> points) {
  std::ranges::sort(points);
  Curve hull;
  for (const auto& [time, cost] : points) {
    // The cheaper one of two points with equal times comes first.
    if (!hull.times.empty() && hull.times.back() == time) continue;
    // Drop the last vertex if it lies on or above the line from the one before it to the new one.
    while (hull.times.size() >= 2) {
      const std::size_t last = hull.times.size() - 1;
      const double slope =
          (hull.costs[last - 1] - cost) / static_cast<double>(time - hull.times[last - 1]);
      if (hull.SlopeBefore(last) > slope) break;
      hull.times.pop_back();
      hull.costs.pop_back();
    }
    hull.times.push_back(time);
    hull.costs.push_back(cost);
  }
  // Drop points that are slower than another one without being cheaper.
  while (hull.times.size() > 1 && hull.costs.back() >= hull.costs[hull.costs.size() - 2]) {
    hull.times.pop_back();
    hull.costs.pop_back();
  }
  return hull;
}

Curve MakeHull(const Problem& problem, const ComputationKind& kind) {
  std::vector<std::pair<Ticks, double>> points;
  for (const OperatingPoint& point : kind.points)
    points.emplace_back(std::llround(point.time.count() * kMicroseconds),
                        EffectiveEnergy(problem, kind, point).value());
  return LowerHull(std::move(points));
}

Error Unusable(const ComputationKind& kind, std::string_view why) {
  return {ErrorCode::kInvalidArgument, fmt::format("the exponential model of stage {}, {} {}",
                                                   kind.stage, Quote(kind.instruction), why)};
}

Result<Curve> MakeExponential(const ComputationKind& kind, const ExponentialModel& model) {
  if (model.min < 1 || model.max < model.min || model.max - model.min > kMostQuanta)
    return Unusable(kind, fmt::format("lasts from {} to {} quanta: choose a quantum that gives "
                                      "1 to {}",
                                      model.min, model.max, kMostQuanta));
  const bool falls = model.b < 0 && model.a >= 0;
  if ((!falls && model.max > model.min) || !std::isfinite(model.a + model.b + model.c))
    return Unusable(kind, "does not fall: it needs b < 0 <= a");
  Curve curve;
  for (Ticks q = model.min; q <= model.max; ++q) {
    curve.times.push_back(q);
    curve.costs.push_back(model.a * std::exp(model.b * static_cast<double>(q)) + model.c);
  }
  return curve;
}

Result<ExponentialModel> FindModel(const Problem& problem, const ComputationKind& kind) {
  if (kind.exponential) return *kind.exponential;
  const Watts blocking = kind.beside_the_stage ? Watts() : problem.blocking_power;
  return FitExponential(kind, blocking, problem.quantum);
}

// Returns the unit of integer slopes: small enough that rounding does not matter, and large enough
// that the flow through all computations together cannot overflow.
double SlopeUnit(const Problem& problem, const std::vector<Curve>& curves, double finest) {
  double sum = 0;
  for (const Computation& computation : problem.computations) {
    const Curve& curve = curves[At(computation.kind)];
    if (curve.times.size() > 1) sum += curve.SlopeBefore(1);
  }
  return std::max(finest, sum / 0x1p60);
}

ConvexCost Rounded(const Curve& curve, double unit) {
  ConvexCost cost{.times = curve.times,
                  .slopes = std::vector<Slope>(curve.times.size(), 0),
                  .at_longest = Joules(curve.costs.back())};
  Slope least = 1;
  for (std::size_t k = curve.times.size(); k-- > 1;) {
    cost.slopes[k] = std::max<Slope>(std::llround(curve.SlopeBefore(k) / unit), least);
    least = cost.slopes[k];
  }
  return cost;
}

}  // namespace

double ConvexCost::SlopesAbove(Ticks duration) const {
  double sum = 0;
  for (std::size_t k = times.size(); k-- > 1 && times[k] > duration;)
    sum += static_cast<double>(slopes[k]) *
           static_cast<double>(times[k] - std::max(times[k - 1], duration));
  return sum;
}

Joules CostTable::At(int kind, Ticks duration) const {
  const ConvexCost& cost = costs[static_cast<std::size_t>(kind)];
  return cost.at_longest + Joules(cost.SlopesAbove(duration) * slope_unit);
}

Result<CostTable> MakeCosts(const Problem& problem, CostKind kind) {
  CostTable table{.model = kind};
  std::vector<Curve> curves;
  for (const ComputationKind& computation : problem.kinds) {
    if (kind == CostKind::kHull) {
      curves.push_back(MakeHull(problem, computation));
      continue;
    }
    ZEUS_TRY(const ExponentialModel model, FindModel(problem, computation));
    ZEUS_TRY(Curve curve, MakeExponential(computation, model));
    curves.push_back(std::move(curve));
  }
  if (kind == CostKind::kExponential) table.tick = problem.quantum;
  const double finest = kind == CostKind::kHull ? 1e-12 : 1e-9;
  table.slope_unit = SlopeUnit(problem, curves, finest);
  for (const Curve& curve : curves) table.costs.push_back(Rounded(curve, table.slope_unit));
  return table;
}

}  // namespace zeus::pipeline
