// Normal equations of a linear model without a constant: each interval between two updates of the
// sensor is one equation, the times that it spent in each state are its coefficients, and the
// powers are the unknowns. Only sums are kept, so an interval costs as much as the number of states
// squared. States that were never seen, or always together, get an infinite sigma instead of a
// number.
#include "zeus/optimizer/pipeline/power_attribution.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace zeus::pipeline {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Least residual to assume, relative to the energy of an interval: a few updates that happen to
// agree do not prove that the sensor is more precise.
constexpr double kLeastResidual = 0.002;

// Added to the diagonal, relative to it: avoids a division by zero for states that only occur
// together, and makes their sigmas large.
constexpr double kRidge = 1e-9;

// Inverts a symmetric positive definite matrix, by elimination without pivoting.
std::vector<double> Inverse(std::vector<double> matrix, std::size_t size) {
  std::vector<double> inverse(size * size, 0.0);
  for (std::size_t i = 0; i < size; ++i) inverse[i * size + i] = 1.0;
  for (std::size_t pivot = 0; pivot < size; ++pivot) {
    const double divisor = matrix[pivot * size + pivot];
    for (std::size_t k = 0; k < size; ++k) {
      matrix[pivot * size + k] /= divisor;
      inverse[pivot * size + k] /= divisor;
    }
    for (std::size_t row = 0; row < size; ++row) {
      const double factor = matrix[row * size + pivot];
      if (row == pivot || factor == 0.0) continue;
      for (std::size_t k = 0; k < size; ++k) {
        matrix[row * size + k] -= factor * matrix[pivot * size + k];
        inverse[row * size + k] -= factor * inverse[pivot * size + k];
      }
    }
  }
  return inverse;
}

}  // namespace

PowerAttribution::PowerAttribution(std::size_t states)
    : states_(states), normal_(states * states, 0.0), right_(states, 0.0) {}

void PowerAttribution::Add(std::span<const Seconds> exposure, Joules energy) {
  for (std::size_t i = 0; i < states_; ++i) {
    for (std::size_t k = 0; k < states_; ++k)
      Normal(i, k) += exposure[i].count() * exposure[k].count();
    right_[i] += exposure[i].count() * energy.value();
  }
  squares_ += energy.value() * energy.value();
  ++count_;
}

std::vector<PowerAttribution::Estimate> PowerAttribution::Solve() const {
  std::vector<Estimate> estimates(states_, {.sigma = Watts(kInfinity)});
  std::vector<std::size_t> seen;
  for (std::size_t state = 0; state < states_; ++state)
    if (Normal(state, state) > 0) seen.push_back(state);
  const std::size_t size = seen.size();
  if (count_ <= size) return estimates;

  std::vector<double> matrix(size * size);
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t k = 0; k < size; ++k)
      matrix[i * size + k] = Normal(seen[i], seen[k]) * (i == k ? 1 + kRidge : 1);
  const std::vector<double> inverse = Inverse(std::move(matrix), size);

  double explained = 0;
  for (std::size_t i = 0; i < size; ++i) {
    double power = 0;
    for (std::size_t k = 0; k < size; ++k) power += inverse[i * size + k] * right_[seen[k]];
    estimates[seen[i]].power = Watts(power);
    explained += power * right_[seen[i]];
  }
  const double least = kLeastResidual * kLeastResidual * squares_ / static_cast<double>(count_);
  const double variance =
      std::max((squares_ - explained) / static_cast<double>(count_ - size), least);
  for (std::size_t i = 0; i < size; ++i)
    estimates[seen[i]].sigma = Watts(std::sqrt(variance * inverse[i * size + i]));
  return estimates;
}

}  // namespace zeus::pipeline
