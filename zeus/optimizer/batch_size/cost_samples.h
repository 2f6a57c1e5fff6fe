#pragma once

#include <cstdint>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"

namespace zeus {

// The costs of runs with one batch size, in units of its epoch cost: those of the latest `window`
// runs, or of all (window 0), of which only running statistics are kept. One owner.
class CostSamples {
 public:
  explicit CostSamples(int window) : window_(window) {}

  void Add(double cost, bool converged);

  std::int64_t count() const { return count_; }
  std::int64_t converged() const { return converged_; }
  double mean() const { return mean_; }
  // Of the samples themselves (n degrees of freedom), as the reference has it; 0 if all are equal.
  double variance() const;

  Json Save() const;
  static Result<CostSamples> Restore(int window, const Json& state);

 private:
  struct Sample {
    double cost = 0.0;
    bool converged = false;
  };

  void Count(const Sample& sample);

  int window_;
  std::int64_t count_ = 0;
  std::int64_t converged_ = 0;
  double mean_ = 0.0;
  double squares_ = 0.0;          // Sum of squared deviations from the mean.
  std::vector<Sample> latest_{};  // Empty without a window.
};

}  // namespace zeus
