#include "zeus/optimizer/batch_size/lognormal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace zeus {
namespace {

double Cumulative(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// P(X <= x).
double Below(const Lognormal& x, double limit) {
  if (limit <= 0) return 0.0;
  return Cumulative((std::log(limit) - x.mean_log) / std::sqrt(x.variance_log));
}

// E[X; X <= limit].
double MeanBelow(const Lognormal& x, double limit) {
  if (limit <= 0) return 0.0;
  const double sigma = std::sqrt(x.variance_log);
  return x.Mean() * Cumulative((std::log(limit) - x.mean_log) / sigma - sigma);
}

// P(X > floor), without cancellation far out.
double Above(const Lognormal& x, double floor) {
  if (floor <= 0) return 1.0;
  return Cumulative((x.mean_log - std::log(floor)) / std::sqrt(x.variance_log));
}

double Ratio(double dividend, double divisor) {
  return divisor > 0 ? dividend / divisor : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

double Lognormal::Mean() const { return std::exp(mean_log + variance_log / 2); }

double Lognormal::ExpectedShortfall(double limit) const {
  return ExpectedShortfallAbove(0.0, limit);
}

double Lognormal::MeanAbove(double floor) const {
  if (floor <= 0) return Mean();
  const double sigma = std::sqrt(variance_log);
  const double mean = Mean() * Cumulative((mean_log - std::log(floor)) / sigma + sigma);
  return Ratio(mean, Above(*this, floor));
}

double Lognormal::ExpectedShortfallAbove(double floor, double limit) const {
  if (limit <= floor) return 0.0;
  if (variance_log <= 0) return std::max(0.0, limit - Mean());
  const double probability = Below(*this, limit) - Below(*this, floor);
  const double mean = MeanBelow(*this, limit) - MeanBelow(*this, floor);
  return Ratio(std::max(0.0, limit * probability - mean), Above(*this, floor));
}

}  // namespace zeus
