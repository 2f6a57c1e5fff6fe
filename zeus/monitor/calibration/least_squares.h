#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace zeus::calibration {

// Weighted linear least squares in a few unknowns. One owner.
template <std::size_t N>
class LeastSquares {
 public:
  using Vector = std::array<double, N>;
  using Matrix = std::array<Vector, N>;

  // One observation: `value` should be the sum of row[i] * unknown[i].
  void Add(const Vector& row, double value, double weight = 1.0) {
    for (std::size_t i = 0; i < N; ++i) {
      right_[i] += weight * row[i] * value;
      for (std::size_t k = 0; k < N; ++k) normal_[i][k] += weight * row[i] * row[k];
    }
  }

  // nullopt when the observations do not determine the unknowns.
  std::optional<Vector> Solve() const {
    const auto inverse = Inverse();
    if (!inverse) return std::nullopt;
    return Times(*inverse, right_);
  }

  // Inverse of the normal matrix: the covariance of the unknowns for observations of variance
  // 1/weight.
  std::optional<Matrix> Inverse() const {
    Matrix rest = normal_;
    Matrix inverse{};
    for (std::size_t i = 0; i < N; ++i) inverse[i][i] = 1;
    // Symmetric and positive definite: elimination needs no exchange of rows.
    for (std::size_t pivot = 0; pivot < N; ++pivot) {
      const double scale = rest[pivot][pivot];
      if (!(scale > kTiny * normal_[pivot][pivot])) return std::nullopt;
      for (std::size_t k = 0; k < N; ++k) {
        rest[pivot][k] /= scale;
        inverse[pivot][k] /= scale;
      }
      for (std::size_t i = 0; i < N; ++i) {
        if (i == pivot) continue;
        const double factor = rest[i][pivot];
        for (std::size_t k = 0; k < N; ++k) {
          rest[i][k] -= factor * rest[pivot][k];
          inverse[i][k] -= factor * inverse[pivot][k];
        }
      }
    }
    return inverse;
  }

  static Vector Times(const Matrix& matrix, const Vector& vector) {
    Vector product{};
    for (std::size_t i = 0; i < N; ++i)
      for (std::size_t k = 0; k < N; ++k) product[i] += matrix[i][k] * vector[k];
    return product;
  }

  static double Dot(const Vector& a, const Vector& b) {
    double sum = 0;
    for (std::size_t i = 0; i < N; ++i) sum += a[i] * b[i];
    return sum;
  }

 private:
  // A pivot that lost so many digits to cancellation holds only rounding.
  static constexpr double kTiny = 1e-12;

  Matrix normal_{};
  Vector right_{};
};

}  // namespace zeus::calibration
