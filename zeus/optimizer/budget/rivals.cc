#include "zeus/optimizer/budget/rivals.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

namespace zeus::water_filling {

namespace {

// The limit that a rule gives a job; rises with `level`, from 0 (the lowest) to 1 (the highest).
// `most` is the highest limit of all jobs.
Watts LimitAt(const Job& job, Rival rival, double level, Watts most, Watts step) {
  const PowerCurve& curve = *job.curve;
  Watts limit = curve.highest();
  switch (rival) {
    case Rival::kUniform:
      limit = level * curve.highest();
      break;
    case Rival::kEqual:
      limit = level * most;
      break;
    case Rival::kDemand:
      // Twice the draw is above any limit that could bind.
      limit = 2 * level * curve.DrawAt(curve.highest());
      break;
    case Rival::kMinMax:
      // Slowdowns from very many to 1; a job that is never so slow gets its lowest limit.
      limit = curve.LimitFor(level > 0 ? 1 / level : INFINITY).value_or(curve.highest());
      break;
  }
  const LimitRange range = RangeOf(job, step);
  return std::clamp(step * std::floor(limit / step + 1e-9), range.lowest, range.highest);
}

std::vector<Watts> LimitsAt(const Problem& problem, Rival rival, double level) {
  Watts most{};  // Highest limit of all.
  for (const Job& job : problem.jobs) most = std::max(most, job.curve->highest());
  std::vector<Watts> limits;
  for (const Job& job : problem.jobs)
    limits.push_back(LimitAt(job, rival, level, most, problem.step));
  return limits;
}

bool Fits(const Problem& problem, const std::vector<Watts>& limits) {
  std::vector<double> free;
  for (const Domain& domain : problem.domains)
    free.push_back((domain.watts - domain.reserved).value());
  for (std::size_t j = 0; j < limits.size(); ++j) {
    const double taken = TakenAt(problem.jobs[j], limits[j], problem.resource).value();
    for (const Placement& placement : problem.jobs[j].placements) {
      for (auto at = std::optional(placement.domain); at; at = problem.domains[*at].parent)
        free[*at] -= placement.gpus * taken;
    }
  }
  return std::ranges::all_of(free, [](double watts) { return watts >= -1e-9; });
}

}  // namespace

std::string_view ToText(Rival rival) {
  switch (rival) {
    case Rival::kUniform:
      return "uniform";
    case Rival::kEqual:
      return "equal";
    case Rival::kDemand:
      return "demand";
    case Rival::kMinMax:
      return "min-max";
  }
  return "";
}

Result<std::vector<Watts>> RivalLimits(const Problem& problem, Rival rival) {
  ZEUS_RETURN_IF_ERROR(Check(problem));
  double low = 0;
  double high = 1;
  std::vector<Watts> limits = LimitsAt(problem, rival, high);
  if (Fits(problem, limits)) return limits;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (Fits(problem, LimitsAt(problem, rival, middle)) ? low : high) = middle;
  }
  return LimitsAt(problem, rival, low);
}

Outcome OutcomeOf(const Problem& problem, std::span<const Watts> limits) {
  Outcome outcome;
  double gpus = 0;
  double slowdowns = 0;
  double speeds = 0;
  double energy = 0;
  double full_energy = 0;
  for (std::size_t j = 0; j < limits.size(); ++j) {
    const PowerCurve& curve = *problem.jobs[j].curve;
    const double count = problem.jobs[j].gpus();
    const double slowdown = curve.SlowdownAt(limits[j]);
    gpus += count;
    slowdowns += count * slowdown;
    speeds += count / slowdown;
    outcome.worst_slowdown = std::max(outcome.worst_slowdown, slowdown);
    outcome.draw += count * curve.DrawAt(limits[j]);
    energy += count * slowdown * curve.DrawAt(limits[j]).value();
    full_energy += count * curve.DrawAt(curve.highest()).value();
  }
  if (gpus > 0) {
    outcome.mean_slowdown = slowdowns / gpus;
    outcome.throughput = speeds / gpus;
    outcome.energy = energy / full_energy;
  }
  return outcome;
}

}  // namespace zeus::water_filling
