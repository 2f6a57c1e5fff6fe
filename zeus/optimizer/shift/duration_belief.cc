#include "zeus/optimizer/shift/duration_belief.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace zeus {
namespace {

// Quantiles of Student's t distribution by degrees of freedom, from tables: with few runs the
// spread itself is hardly known, and the tail is long.
struct Quantiles {
  double degrees;
  double q95;
  double q9999;
};
constexpr std::array kStudent{Quantiles{8, 1.860, 6.442},  Quantiles{10, 1.812, 5.694},
                              Quantiles{15, 1.753, 4.880}, Quantiles{20, 1.725, 4.539},
                              Quantiles{30, 1.697, 4.234}, Quantiles{60, 1.671, 3.962},
                              Quantiles{120, 1.658, 3.838}};
// Before a run is seen, the belief is as if so many had shown the assumed spread.
constexpr double kRunsOfAssumption = 8;

// Between two rows the one with fewer degrees of freedom is the careful one.
const Quantiles& QuantilesFor(double degrees) {
  const auto next = std::ranges::upper_bound(kStudent, degrees, {}, &Quantiles::degrees);
  return next == kStudent.begin() ? kStudent.front() : *std::prev(next);
}

}  // namespace

DurationBelief::DurationBelief(Seconds mean, Seconds sigma, double degrees)
    : mean_(mean), sigma_(sigma) {
  const Quantiles& quantiles = QuantilesFor(degrees);
  q95_ = mean + quantiles.q95 * sigma;
  longest_ = mean + quantiles.q9999 * sigma;
}

DurationBelief DurationBelief::FromRuns(std::span<const Seconds> runs) {
  const auto count = static_cast<double>(runs.size());
  Seconds sum{0};
  for (const Seconds run : runs) sum += run;
  const Seconds mean = sum / std::max(count, 1.0);
  double squares = kRunsOfAssumption * std::pow(kAssumedSpread * mean.count(), 2);
  for (const Seconds run : runs) squares += std::pow((run - mean).count(), 2);
  const double degrees = kRunsOfAssumption + count - 1;
  const double spread = std::sqrt(squares / degrees);
  return {mean, Seconds(spread * std::sqrt(1 + 1 / std::max(count, 1.0))), degrees};
}

DurationBelief DurationBelief::Of(Seconds mean, Seconds sigma) { return {mean, sigma, HUGE_VAL}; }

DurationBelief DurationBelief::Times(double share) const {
  DurationBelief part = *this;
  part.mean_ *= share;
  part.sigma_ *= share;
  part.q95_ *= share;
  part.longest_ *= share;
  return part;
}

}  // namespace zeus
