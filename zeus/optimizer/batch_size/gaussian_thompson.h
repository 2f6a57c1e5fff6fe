#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/random.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/policy_state.h"

namespace zeus {

// The costs of runs with one batch size, in units of its epoch cost. With a window, the latest
// `window` runs are kept and count. Without one (0), all runs count, and only running statistics
// are kept. One owner.
class CostSamples {
 public:
  explicit CostSamples(int window) : window_(window) {}

  void Add(double cost, bool converged);

  std::int64_t count() const { return count_; }
  std::int64_t converged() const { return converged_; }
  double mean() const { return mean_; }
  // The variance of the samples themselves (divided by n, as in the authors' implementation);
  // exactly 0 if all are equal.
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
  std::vector<Sample> latest_{};  // The samples in the window; empty without one.
};

// A belief about the mean cost of one arm: a normal distribution.
struct CostBelief {
  Joules mean{};
  Joules sigma{};  // 0 if all observed costs are equal: the belief is a point mass.
};

// Gaussian Thompson sampling with a learned cost variance (Zeus §4.3, Algorithms 1 and 2). An arm
// is a batch size. Each arm has a normal belief about its mean cost; a choice draws one number from
// every belief and picks the arm with the least. An arm is thus chosen as often as it is believed
// to be the best, so that uncertain arms are explored and bad ones are left alone.
// Costs are kept in units of the arm's epoch cost, so that they can be converted to any GPU model
// (Zeus §7). One owner.
class GaussianThompson {
 public:
  struct Options {
    int window = 0;  // How many of the latest observations of an arm count; 0: all.
    // Prior of the reward, which is minus the cost in joules. Precision 0: a flat prior.
    double prior_mean = 0.0;
    double prior_precision = 0.0;
    int explorations = 2;  // Observations an arm needs before its belief is sampled.
  };

  GaussianThompson(std::span<const int> batch_sizes, const Options& options);

  // Records a run with one of the arms. The cost is in units of the epoch cost.
  void Observe(int batch_size, double cost, bool converged);

  const CostSamples& samples(int batch_size) const { return samples_.at(batch_size); }
  // Returns nullopt when the arm has no observation and the prior is flat.
  std::optional<CostBelief> Belief(int batch_size, Joules epoch_cost) const;

  // Returns the arm with the least cost drawn from its belief. Arms with too few observations come
  // first, in random order. Here and below, `arms` are candidates, and `epoch_costs` has one entry
  // for every batch size of the constructor.
  int Predict(std::span<const int> arms, std::span<const Joules> epoch_costs, Random& random) const;
  // Returns the first arm with too few observations for a belief; nullopt when there is none.
  std::optional<int> FirstUnknown(std::span<const int> arms) const;
  // Returns the arm with the least believed mean cost.
  int Best(std::span<const int> arms, std::span<const Joules> epoch_costs) const;

  Json Save() const;
  Status Restore(const Json& state);

 private:
  std::optional<CostBelief> BeliefFrom(const CostSamples& samples, Joules epoch_cost) const;
  bool NeedsObservations(const CostSamples& samples) const;
  Joules CostAt(std::span<const Joules> epoch_costs, ByBatchSize<CostSamples>::Place samples) const;

  Options options_;
  ByBatchSize<CostSamples> samples_{};
};

}  // namespace zeus
