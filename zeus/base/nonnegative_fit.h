#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace zeus {

// Least squares with coefficients that cannot be negative, a prior for each of them, and a memory
// that fades. It holds sums only, so its size does not grow with the number of rows. One owner.
class NonNegativeFit {
 public:
  explicit NonNegativeFit(std::size_t size);

  std::size_t size() const { return size_; }
  // Coefficient `index` is `mean` give or take `sigma`, before any row is seen. A sigma of 0 or
  // less removes the prior.
  void SetPrior(std::size_t index, double mean, double sigma);
  // One row: y = sum of x times the coefficients, with variance 1 / weight. Rows that are not
  // finite are ignored.
  void Add(std::span<const double> x, double y, double weight);
  // Rows seen so far count `factor` times what they did.
  void Forget(double factor);
  // Computes the coefficients and their covariance from the rows so far.
  void Solve();

  double operator[](std::size_t index) const { return solution_[index]; }
  std::span<const double> solution() const { return solution_; }
  // The variance of sum(gradient * coefficients), and the covariance of two such sums.
  double Variance(std::span<const double> gradient) const;
  // The covariance between coefficients i and j.
  double Covariance(std::size_t i, std::size_t j) const { return covariance_[i * size_ + j]; }
  // The sum of the weights times the square of coefficient `index`: how much rows say about it.
  double information(std::size_t index) const { return normal_[index * size_ + index]; }
  // Appends a coefficient that no row so far has mentioned.
  void Grow(std::size_t size);

 private:
  bool SolveFor(const std::vector<bool>& free, std::vector<double>& result);
  std::size_t MostNegative(const std::vector<bool>& free, const std::vector<double>& trial) const;
  std::size_t BestToRelease(const std::vector<bool>& free, const std::vector<double>& trial) const;
  void Invert();

  std::size_t size_;
  std::vector<double> normal_;  // Sum of weight x x^T, row by row.
  std::vector<double> moment_;  // Sum of weight x y.
  std::vector<double> prior_mean_;
  std::vector<double> prior_weight_;
  std::vector<double> solution_;
  std::vector<double> covariance_;
};

}  // namespace zeus
