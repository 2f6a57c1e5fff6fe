#include "zeus/optimizer/batch_size/epoch_belief.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace zeus {
namespace {

// Per octave away from the default batch size.
constexpr double kSlopeBelow = 0.15;
constexpr double kSlopeAbove = 0.25;
// How far the curve strays from that, and over how many octaves.
constexpr double kCurveSigma = 0.8;
constexpr double kLengthOctaves = 4.0;
// The level is practically unknown: one standard deviation is a factor of 20.
constexpr double kLevelVariance = 9.0;
// Evidence is never better than 0.1 %. It keeps neighbours that are almost the same from making the
// equations singular.
constexpr double kLeastVariance = 1e-6;

double Matern52(double distance) {
  const double r = std::sqrt(5.0) * distance;
  return (1 + r + r * r / 3) * std::exp(-r);
}

// The lower triangle L with L L^T = the covariance of the evidence, and equations solved with it.
class Cholesky {
 public:
  explicit Cholesky(std::size_t size) : size_(size), factor_(size * size) {}

  double& at(std::size_t row, std::size_t column) { return factor_[row * size_ + column]; }

  void Factor() {
    for (std::size_t column = 0; column < size_; ++column) {
      for (std::size_t row = column; row < size_; ++row) {
        double rest = at(row, column);
        for (std::size_t i = 0; i < column; ++i) rest -= at(row, i) * at(column, i);
        // Rounding alone could make the diagonal less than the variance of the evidence.
        at(row, column) =
            row == column ? std::sqrt(std::max(rest, kLeastVariance)) : rest / at(column, column);
      }
    }
  }

  // The x with L x = values, in place.
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
  std::vector<double> surprise;  // Later: L^-1 of it.
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
