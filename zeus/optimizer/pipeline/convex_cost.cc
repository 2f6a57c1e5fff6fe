#include "zeus/optimizer/pipeline/convex_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/optimizer/pipeline/exponential_fit.h"

namespace zeus::pipeline {
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
