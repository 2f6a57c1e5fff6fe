#include "zeus/base/statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <vector>

namespace zeus {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// From here on Student's distribution is the normal one, to five digits.
constexpr double kManyDegreesOfFreedom = 1e5;
constexpr int kBisections = 200;   // More than the bits of a double.
constexpr double kFarRatio = 1e9;  // Beyond it the data allow everything.

// The continued fraction of the incomplete beta function (Lentz's evaluation). Converges quickly
// for x < (a + 1) / (a + b + 2).
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr double kPrecision = 1e-15;
  constexpr int kMostTerms = 100000;
  const auto nonzero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };

  double c = 1;
  double d = 1 / nonzero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m <= kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 1;
    for (const double term : {even, odd}) {
      d = 1 / nonzero(1 + term * d);
      c = nonzero(1 + term / c);
      change = c * d;
      fraction *= change;
    }
    if (std::abs(change - 1) < kPrecision) break;
  }
  return fraction;
}

// std::lgamma writes a global sign, which other threads may be writing too.
double LogGamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

// The regularised incomplete beta function.
double IncompleteBeta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(LogGamma(a + b) - LogGamma(a) - LogGamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * BetaFraction(a, b, x) / a;
  return 1 - front * BetaFraction(b, a, 1 - x) / b;
}

double NormalCumulative(double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; }

// The variance of mean(changed) - ratio * mean(base), and its degrees of freedom.
struct Contrast {
  double variance;
  double degrees_of_freedom;
};

Contrast ContrastAt(double ratio, const RatioSide& base, const RatioSide& changed) {
  double variance = 0;
  double denominator = 0;
  const auto add = [&](const RatioSide& side, double scale) {
    const double count = static_cast<double>(side.sample.count);
    const double scattered = scale * scale * side.sample.variance / count;
    const double shared = scale * side.sample.mean * side.shared_error;
    variance += scattered + shared * shared;
    denominator += scattered * scattered / (count - 1);
  };
  add(base, ratio);
  add(changed, 1);
  const double degrees =
      denominator > 0 ? variance * variance / denominator : kManyDegreesOfFreedom;
  return {variance, std::min(degrees, kManyDegreesOfFreedom)};
}

// The confidence with which the true mean of `changed` is above ratio * that of `base`.
double ConfidenceAbove(double ratio, const RatioSide& base, const RatioSide& changed) {
  const Contrast contrast = ContrastAt(ratio, base, changed);
  const double difference = changed.sample.mean - ratio * base.sample.mean;
  if (contrast.variance > 0)
    return StudentCumulative(difference / std::sqrt(contrast.variance),
                             contrast.degrees_of_freedom);
  if (difference == 0) return 0.5;
  return difference > 0 ? 1 : 0;
}

// Where `falling`, a function of the ratio, passes `level`, between two ratios.
double FindRatio(double low, double high, double level, const auto& falling) {
  for (int i = 0; i < kBisections && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (falling(middle) > level ? low : high) = middle;
  }
  return low;
}

// Means of resamples, widened as the header says.
double ResampledMean(std::span<const double> values, double mean, Random& random) {
  const double count = static_cast<double>(values.size());
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[random.Below(values.size())] - mean;
  return mean + sum / count * std::sqrt(count / (count - 1));
}

double SortedQuantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - std::floor(position));
}

}  // namespace

double SampleSummary::StandardDeviation() const { return std::sqrt(variance); }

double SampleSummary::StandardError() const {
  return count == 0 ? 0 : std::sqrt(variance / static_cast<double>(count));
}

SampleSummary Summarize(std::span<const double> values) {
  SampleSummary summary;
  double squares = 0;
  for (const double value : values) {  // Welford's recurrence: no difference of large sums.
    ++summary.count;
    const double step = value - summary.mean;
    summary.mean += step / static_cast<double>(summary.count);
    squares += step * (value - summary.mean);
  }
  if (summary.count > 1) summary.variance = squares / static_cast<double>(summary.count - 1);
  return summary;
}

double StudentCumulative(double t, double degrees_of_freedom) {
  const double x = degrees_of_freedom / (degrees_of_freedom + t * t);
  const double tail = IncompleteBeta(degrees_of_freedom / 2, 0.5, x) / 2;
  return t > 0 ? 1 - tail : tail;
}

double StudentQuantile(double probability, double degrees_of_freedom) {
  assert(probability > 0 && probability < 1);
  if (probability < 0.5) return -StudentQuantile(1 - probability, degrees_of_freedom);
  double high = 1;
  while (StudentCumulative(high, degrees_of_freedom) < probability && high < 1e300) high *= 2;
  double low = 0;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (StudentCumulative(middle, degrees_of_freedom) < probability ? low : high) = middle;
  }
  return high;
}

Interval MeanInterval(const SampleSummary& sample, double confidence) {
  if (sample.count < 2) return {-kInfinity, kInfinity};
  const double t = StudentQuantile((1 + confidence) / 2, static_cast<double>(sample.count - 1));
  return {sample.mean - t * sample.StandardError(), sample.mean + t * sample.StandardError()};
}

Interval WilsonInterval(double hits, double cases, double confidence) {
  assert(cases > 0);
  // Student's distribution with so many degrees of freedom is the normal one.
  const double z = StudentQuantile((1 + confidence) / 2, 1e9);
  const double share = hits / cases;
  const double scale = 1 + z * z / cases;
  const double middle = (share + z * z / (2 * cases)) / scale;
  const double half =
      z / scale * std::sqrt(share * (1 - share) / cases + z * z / (4 * cases * cases));
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

std::optional<Interval> MedianInterval(std::span<const double> sorted, double confidence) {
  const auto n = static_cast<double>(sorted.size());
  // The number of values below the median is binomial: probability of k is C(n, k) / 2^n.
  double tail = 0;
  std::optional<Interval> interval;
  for (std::size_t k = 0; 2 * (k + 1) <= sorted.size(); ++k) {
    const auto below = static_cast<double>(k);
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(below + 1) - std::lgamma(n - below + 1) -
                     n * std::log(2.0));
    if (2 * tail > 1 - confidence) break;
    interval = {sorted[k], sorted[sorted.size() - 1 - k]};
  }
  return interval;
}

Interval WelchRatioBounds(const RatioSide& base, const RatioSide& changed, double confidence) {
  assert(base.sample.count > 1 && changed.sample.count > 1);
  const auto above = [&](double ratio) { return ConfidenceAbove(ratio, base, changed); };
  const double ratio = changed.sample.mean / base.sample.mean;
  const double low = above(0) > confidence ? FindRatio(0, ratio, confidence, above) : 0;
  double beyond = std::max(2 * ratio, 1.0);
  while (above(beyond) > 1 - confidence && beyond < kFarRatio) beyond *= 2;
  const double high =
      beyond < kFarRatio ? FindRatio(ratio, beyond, 1 - confidence, above) : kInfinity;
  return {low, high};
}

Interval BootstrapRatioBounds(std::span<const double> base, std::span<const double> changed,
                              const BootstrapOptions& options, Random& random) {
  const RatioSide base_side{Summarize(base), options.base_shared_error};
  const RatioSide changed_side{Summarize(changed), options.changed_shared_error};
  assert(base_side.sample.count > 1 && changed_side.sample.count > 1);
  std::vector<double> ratios;
  ratios.reserve(static_cast<std::size_t>(options.resamples));
  for (int i = 0; i < options.resamples; ++i) {
    const double below = ResampledMean(base, base_side.sample.mean, random) *
                         (1 + options.base_shared_error * random.Normal());
    const double above = ResampledMean(changed, changed_side.sample.mean, random) *
                         (1 + options.changed_shared_error * random.Normal());
    ratios.push_back(below > 0 ? above / below : kFarRatio);
  }
  std::ranges::sort(ratios);
  const double ratio = changed_side.sample.mean / base_side.sample.mean;
  const Contrast contrast = ContrastAt(ratio, base_side, changed_side);
  const double share =
      NormalCumulative(StudentQuantile(options.confidence, contrast.degrees_of_freedom));
  return {SortedQuantile(ratios, 1 - share), SortedQuantile(ratios, share)};
}

}  // namespace zeus
