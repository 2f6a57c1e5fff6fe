#include "zeus/base/nonnegative_fit.h"

#include <algorithm>
#include <cmath>

namespace zeus {
namespace {

// Cholesky decomposition in place of a symmetric matrix whose diagonal has been scaled to 1. A
// pivot below this is a direction about which nothing is known.
constexpr double kSmallestPivot = 1e-12;

struct Cholesky {
  std::size_t size;
  std::vector<double> lower;

  // False if the matrix is singular to rounding.
  bool Decompose() {
    for (std::size_t j = 0; j < size; ++j) {
      double pivot = lower[j * size + j];
      for (std::size_t k = 0; k < j; ++k) pivot -= lower[j * size + k] * lower[j * size + k];
      if (!(pivot > kSmallestPivot)) return false;
      const double root = std::sqrt(pivot);
      lower[j * size + j] = root;
      for (std::size_t i = j + 1; i < size; ++i) {
        double sum = lower[i * size + j];
        for (std::size_t k = 0; k < j; ++k) sum -= lower[i * size + k] * lower[j * size + k];
        lower[i * size + j] = sum / root;
      }
    }
    return true;
  }
  void Solve(std::vector<double>& right) const {
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t k = 0; k < i; ++k) right[i] -= lower[i * size + k] * right[k];
      right[i] /= lower[i * size + i];
    }
    for (std::size_t i = size; i-- > 0;) {
      for (std::size_t k = i + 1; k < size; ++k) right[i] -= lower[k * size + i] * right[k];
      right[i] /= lower[i * size + i];
    }
  }
};

}  // namespace

NonNegativeFit::NonNegativeFit(std::size_t size)
    : size_(size),
      normal_(size * size),
      moment_(size),
      prior_mean_(size),
      prior_weight_(size),
      solution_(size),
      covariance_(size * size) {}

void NonNegativeFit::SetPrior(std::size_t index, double mean, double sigma) {
  prior_mean_[index] = mean;
  prior_weight_[index] = sigma > 0 ? 1 / (sigma * sigma) : 0;
}

void NonNegativeFit::Add(std::span<const double> x, double y, double weight) {
  if (!std::isfinite(y) || !std::isfinite(weight) || weight <= 0) return;
  if (!std::all_of(x.begin(), x.end(), [](double value) { return std::isfinite(value); })) return;
  for (std::size_t i = 0; i < size_; ++i) {
    if (x[i] == 0) continue;
    const double scaled = weight * x[i];
    for (std::size_t j = 0; j < size_; ++j) normal_[i * size_ + j] += scaled * x[j];
    moment_[i] += scaled * y;
  }
}

void NonNegativeFit::Forget(double factor) {
  for (double& value : normal_) value *= factor;
  for (double& value : moment_) value *= factor;
}

bool NonNegativeFit::SolveFor(const std::vector<bool>& free, std::vector<double>& result) {
  std::vector<std::size_t> index;
  for (std::size_t i = 0; i < size_; ++i)
    if (free[i]) index.push_back(i);
  const std::size_t n = index.size();
  Cholesky system{n, std::vector<double>(n * n)};
  std::vector<double> scale(n);
  for (std::size_t i = 0; i < n; ++i)
    scale[i] = 1 / std::sqrt(normal_[index[i] * size_ + index[i]] + prior_weight_[index[i]]);
  std::vector<double> right(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j)
      system.lower[i * n + j] = normal_[index[i] * size_ + index[j]] * scale[i] * scale[j];
    system.lower[i * n + i] = 1 + 1e-10;
    right[i] = (moment_[index[i]] + prior_weight_[index[i]] * prior_mean_[index[i]]) * scale[i];
  }
  if (!system.Decompose()) return false;
  system.Solve(right);
  std::fill(result.begin(), result.end(), 0.0);
  for (std::size_t i = 0; i < n; ++i) result[index[i]] = right[i] * scale[i];
  return true;
}

// The free coefficient that is most negative in `trial`; size() if there is none.
std::size_t NonNegativeFit::MostNegative(const std::vector<bool>& free,
                                         const std::vector<double>& trial) const {
  std::size_t worst = size_;
  for (std::size_t i = 0; i < size_; ++i)
    if (free[i] && trial[i] < 0 && (worst == size_ || trial[i] < trial[worst])) worst = i;
  return worst;
}

// The held coefficient with which the sum of squares would fall fastest; size() if there is none.
std::size_t NonNegativeFit::BestToRelease(const std::vector<bool>& free,
                                          const std::vector<double>& trial) const {
  std::size_t release = size_;
  double steepest = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    const double curvature = normal_[i * size_ + i] + prior_weight_[i];
    if (free[i] || curvature <= 0) continue;
    double slope = moment_[i] + prior_weight_[i] * prior_mean_[i];
    for (std::size_t j = 0; j < size_; ++j) slope -= normal_[i * size_ + j] * trial[j];
    if (slope / std::sqrt(curvature) <= steepest + 1e-9) continue;
    steepest = slope / std::sqrt(curvature);
    release = i;
  }
  return release;
}

void NonNegativeFit::Solve() {
  std::vector<bool> free(size_);
  for (std::size_t i = 0; i < size_; ++i) free[i] = normal_[i * size_ + i] + prior_weight_[i] > 0;
  std::vector<double> trial(size_);
  // Active set: coefficients that turn negative are held at zero, and released again where the sum
  // of squares would fall. A cycle is cut by the bound on the rounds.
  for (std::size_t round = 0; round < 3 * size_ + 3; ++round) {
    if (!SolveFor(free, trial)) return;
    if (const std::size_t worst = MostNegative(free, trial); worst != size_) {
      free[worst] = false;
      continue;
    }
    const std::size_t release = BestToRelease(free, trial);
    if (release == size_ || round >= 2 * size_) break;
    free[release] = true;
  }
  for (std::size_t i = 0; i < size_; ++i) solution_[i] = std::max(0.0, trial[i]);
  Invert();
}

void NonNegativeFit::Invert() {
  std::vector<double> scale(size_);
  for (std::size_t i = 0; i < size_; ++i) {
    const double curvature = normal_[i * size_ + i] + prior_weight_[i];
    scale[i] = curvature > 0 ? 1 / std::sqrt(curvature) : 0;
  }
  Cholesky system{size_, std::vector<double>(size_ * size_)};
  for (std::size_t i = 0; i < size_; ++i) {
    for (std::size_t j = 0; j < size_; ++j)
      system.lower[i * size_ + j] = normal_[i * size_ + j] * scale[i] * scale[j];
    system.lower[i * size_ + i] = 1 + 1e-9;
  }
  if (!system.Decompose()) return;
  for (std::size_t i = 0; i < size_; ++i) {
    std::vector<double> unit(size_);
    unit[i] = 1;
    system.Solve(unit);
    for (std::size_t j = 0; j < size_; ++j)
      covariance_[i * size_ + j] = unit[j] * scale[i] * scale[j];
  }
}

double NonNegativeFit::Variance(std::span<const double> gradient) const {
  double sum = 0;
  for (std::size_t i = 0; i < size_; ++i)
    for (std::size_t j = 0; j < size_; ++j)
      sum += gradient[i] * covariance_[i * size_ + j] * gradient[j];
  return std::max(0.0, sum);
}

void NonNegativeFit::Grow(std::size_t size) {
  const auto widen = [&](std::vector<double>& matrix) {
    std::vector<double> wider(size * size);
    for (std::size_t i = 0; i < size_; ++i)
      for (std::size_t j = 0; j < size_; ++j) wider[i * size + j] = matrix[i * size_ + j];
    matrix = std::move(wider);
  };
  widen(normal_);
  widen(covariance_);
  moment_.resize(size);
  prior_mean_.resize(size);
  prior_weight_.resize(size);
  solution_.resize(size);
  size_ = size;
}

}  // namespace zeus
