#include "zeus/optimizer/batch_size/epoch_belief.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace zeus {
namespace {

// Standard deviation of ln cost per octave to the nearest known batch size: between two known ones,
// outside of two or more, and when only one is known.
constexpr double kSigmaBetween = 0.05;
constexpr double kSigmaOutside = 0.12;
constexpr double kSigmaFromOne = 0.20;
// When only one batch size is known, ln cost falls by so much per octave towards larger ones and
// rises by so much towards smaller ones.
constexpr double kFallPerOctave = 0.20;
constexpr double kRisePerOctave = 0.25;
// Standard deviation of ln cost when the cost was measured on another GPU model.
constexpr double kSigmaTranslated = 0.10;

struct Known {
  int batch_size;
  EpochCostBelief belief;

  double octave() const { return std::log2(batch_size); }
  double cost() const { return std::exp(belief.log_cost); }
};

std::vector<Known> KnownCosts(const EpochCostTable& table, std::string_view gpu_model,
                              std::span<const int> batch_sizes) {
  std::vector<Known> known;
  for (const int batch_size : batch_sizes) {
    if (const auto cost = table.Profiled(gpu_model, batch_size))
      known.push_back({batch_size, {.log_cost = std::log(cost->value()), .profiled = true}});
    else if (const auto translated = table.Translated(gpu_model, batch_size))
      known.push_back(
          {batch_size, {.log_cost = std::log(translated->value()), .sigma = kSigmaTranslated}});
  }
  return known;
}

EpochCostBelief Uncertain(double log_cost, double own_sigma, const Known& nearest) {
  return {.log_cost = log_cost, .sigma = std::hypot(own_sigma, nearest.belief.sigma)};
}

EpochCostBelief FromOne(const Known& one, int batch_size) {
  const double octaves = std::log2(batch_size) - one.octave();
  const double slope = octaves > 0 ? kFallPerOctave : kRisePerOctave;
  return Uncertain(one.belief.log_cost - slope * octaves, kSigmaFromOne * std::abs(octaves), one);
}

// The curve A / b + C through two known batch sizes.
struct CostCurve {
  double per_step = 0.0;
  double rest = 0.0;

  CostCurve(const Known& a, const Known& b) {
    const double a_inverse = 1.0 / a.batch_size;
    per_step = (a.cost() - b.cost()) / (a_inverse - 1.0 / b.batch_size);
    rest = a.cost() - per_step * a_inverse;
  }
  double At(int batch_size) const { return per_step / batch_size + rest; }
};

EpochCostBelief Between(const Known& below, const Known& above, int batch_size) {
  const double octave = std::log2(batch_size);
  const Known& nearest = octave - below.octave() <= above.octave() - octave ? below : above;
  return Uncertain(std::log(CostCurve(below, above).At(batch_size)),
                   kSigmaBetween * std::abs(octave - nearest.octave()), nearest);
}

EpochCostBelief Outside(const Known& nearest, const Known& second, int batch_size) {
  const CostCurve curve(nearest, second);
  double cost = curve.At(batch_size);
  // Noise must not make the curve cheaper towards smaller batch sizes, nor let it reach 0 J.
  if (curve.per_step <= 0)
    cost = nearest.cost();
  else if (curve.rest <= 0)
    cost = nearest.cost() * nearest.batch_size / batch_size;
  return Uncertain(std::log(cost),
                   kSigmaOutside * std::abs(std::log2(batch_size) - nearest.octave()), nearest);
}

}  // namespace

std::vector<std::optional<EpochCostBelief>> BelieveEpochCosts(const EpochCostTable& table,
                                                              std::string_view gpu_model,
                                                              std::span<const int> batch_sizes) {
  const std::vector<Known> known = KnownCosts(table, gpu_model, batch_sizes);
  std::vector<std::optional<EpochCostBelief>> beliefs(batch_sizes.size());
  if (known.empty()) return beliefs;
  for (std::size_t i = 0; i < batch_sizes.size(); ++i) {
    const int batch_size = batch_sizes[i];
    const auto above = std::ranges::lower_bound(known, batch_size, {}, &Known::batch_size);
    if (above != known.end() && above->batch_size == batch_size)
      beliefs[i] = above->belief;
    else if (known.size() == 1)
      beliefs[i] = FromOne(known.front(), batch_size);
    else if (above == known.begin())
      beliefs[i] = Outside(known[0], known[1], batch_size);
    else if (above == known.end())
      beliefs[i] = Outside(known.back(), known[known.size() - 2], batch_size);
    else
      beliefs[i] = Between(*std::prev(above), *above, batch_size);
  }
  return beliefs;
}

namespace {

// The prior mean of ln epochs rises with the batch size by so much per octave (doubling), below and
// above the default.
constexpr double kSlopeBelow = 0.15;
constexpr double kSlopeAbove = 0.25;
// The curve strays from the prior mean by this standard deviation, on this length scale.
constexpr double kCurveSigma = 0.8;
constexpr double kLengthOctaves = 4.0;
// The level of the whole curve is practically unknown: one standard deviation is a factor of 20.
constexpr double kLevelVariance = 9.0;
// No evidence is taken to be better than 0.1 %: exact evidence of almost equal batch sizes would
// make the equations singular.
constexpr double kLeastVariance = 1e-6;

// The Matérn covariance function with nu = 5/2; the distance is in length scales.
double Matern52(double distance) {
  const double r = std::sqrt(5.0) * distance;
  return (1 + r + r * r / 3) * std::exp(-r);
}

// The Cholesky factor L of the evidence's covariance K = L L^T, computed in place: fill the lower
// triangle through at(), call Factor(), then Solve().
class Cholesky {
 public:
  explicit Cholesky(std::size_t size) : size_(size), factor_(size * size) {}

  double& at(std::size_t row, std::size_t column) { return factor_[row * size_ + column]; }

  void Factor() {
    for (std::size_t column = 0; column < size_; ++column) {
      for (std::size_t row = column; row < size_; ++row) {
        double rest = at(row, column);
        for (std::size_t i = 0; i < column; ++i) rest -= at(row, i) * at(column, i);
        // The diagonal is at least the variance of the evidence, but for rounding.
        at(row, column) =
            row == column ? std::sqrt(std::max(rest, kLeastVariance)) : rest / at(column, column);
      }
    }
  }

  // Replaces `values` by the x with L x = values.
  void Solve(std::vector<double>& values) {
    for (std::size_t row = 0; row < size_; ++row) {
      for (std::size_t i = 0; i < row; ++i) values[row] -= at(row, i) * values[i];
      values[row] /= at(row, row);
    }
  }

 private:
  std::size_t size_;
  std::vector<double> factor_;
};

}  // namespace

EpochBelief::EpochBelief(std::span<const int> batch_sizes, int default_batch_size) {
  const double origin = std::log2(default_batch_size);
  std::vector<double> x;
  for (const int batch_size : batch_sizes) {
    x.push_back(std::log2(batch_size));
    const double octaves = x.back() - origin;
    mean_.push_back((octaves < 0 ? kSlopeBelow : kSlopeAbove) * octaves);
  }
  for (const double a : x)
    for (const double b : x)
      covariance_.push_back(kCurveSigma * kCurveSigma * Matern52(std::abs(a - b) / kLengthOctaves) +
                            kLevelVariance);
}

std::vector<EpochBelief::Posterior> EpochBelief::Update(
    std::span<const std::optional<Evidence>> evidence) const {
  const std::size_t size = mean_.size();
  std::vector<std::size_t> seen;
  std::vector<double> surprise;  // Evidence less prior mean; L^-1 times that after Solve().
  for (std::size_t i = 0; i < size; ++i) {
    if (!evidence[i]) continue;
    seen.push_back(i);
    surprise.push_back(evidence[i]->log_epochs - mean_[i]);
  }
  Cholesky cholesky(seen.size());
  for (std::size_t row = 0; row < seen.size(); ++row) {
    for (std::size_t column = 0; column <= row; ++column)
      cholesky.at(row, column) = covariance_[seen[row] * size + seen[column]];
    cholesky.at(row, row) += std::max(evidence[seen[row]]->variance, kLeastVariance);
  }
  cholesky.Factor();
  cholesky.Solve(surprise);
  std::vector<Posterior> posterior;
  std::vector<double> weights(seen.size());
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < seen.size(); ++j) weights[j] = covariance_[i * size + seen[j]];
    cholesky.Solve(weights);
    Posterior& arm =
        posterior.emplace_back(Posterior{.mean = mean_[i], .variance = covariance_[i * size + i]});
    for (std::size_t j = 0; j < seen.size(); ++j) {
      arm.mean += weights[j] * surprise[j];
      arm.variance -= weights[j] * weights[j];
    }
    arm.variance = std::max(arm.variance, 0.0);
  }
  return posterior;
}

}  // namespace zeus
