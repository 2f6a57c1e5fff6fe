#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "zeus/base/random.h"

// Statistics of a few repeated measurements: intervals of means and of ratios of means.
namespace zeus {

struct SampleSummary {
  std::size_t count = 0;
  double mean = 0;
  double variance = 0;  // Variance of one value, by n - 1; 0 for a single value.

  double StandardDeviation() const;
  double StandardError() const;  // Standard deviation of the mean.
};
SampleSummary Summarize(std::span<const double> values);

// The distribution of Student, for real degrees of freedom > 0 (Welch's are not whole).
double StudentCumulative(double t, double degrees_of_freedom);
// The t below which the given share lies; 0 < probability < 1.
double StudentQuantile(double probability, double degrees_of_freedom);

struct Interval {
  double low;
  double high;
};

// Two-sided interval of the mean of normally distributed values; infinite for fewer than two.
Interval MeanInterval(const SampleSummary& sample, double confidence);

// Wilson's interval of a share: hits of cases, which may be fractions; cases > 0.
Interval WilsonInterval(double hits, double cases, double confidence);

// An interval of the median by order statistics, for values in ascending order: it holds with at
// least this confidence, whatever their distribution. nullopt when there are too few values.
std::optional<Interval> MedianInterval(std::span<const double> sorted, double confidence);

// One side of a comparison of means.
struct RatioSide {
  SampleSummary sample;
  // One standard deviation, relative, of an error that all values of this side share: it does not
  // show in their scatter and does not shrink with their number.
  double shared_error = 0;
};

// Bounds of the true mean of `changed` over the true mean of `base`, for positive means. Each bound
// alone holds with `confidence` (one-sided), so the interval holds with 2 * confidence - 1.
//
// The lower bound is the largest ratio r at which Welch's test still rejects
// "changed <= r * base"; no approximation of a quotient is involved. Infinite, or 0, where the data
// allow everything; both samples need two values.
Interval WelchRatioBounds(const RatioSide& base, const RatioSide& changed, double confidence);

struct BootstrapOptions {
  double confidence = 0.95;
  int resamples = 10000;
  double base_shared_error = 0;
  double changed_shared_error = 0;
};

// The same bounds without assuming a normal distribution: quantiles of the ratio of resampled
// means. Small samples scatter less than what they are drawn from and have lighter tails than they
// should; both are corrected for (deviations are widened by sqrt(n / (n - 1)), quantiles are those
// of Student's distribution). Needs two values on each side and is sensible from five on.
Interval BootstrapRatioBounds(std::span<const double> base, std::span<const double> changed,
                              const BootstrapOptions& options, Random& random);

}  // namespace zeus
