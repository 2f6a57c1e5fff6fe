#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/random.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/by_batch_size.h"

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

// Normal belief about the mean cost of one arm.
struct CostBelief {
  Joules mean{};
  Joules sigma{};  // 0: a point mass, as all costs that were seen are equal.
};

// Gaussian Thompson sampling with a cost variance that is learned (Zeus §4.3, Algorithms 1 and 2).
// An arm is a batch size. Costs are kept in units of the arm's epoch cost, so that they can be read
// as costs on any GPU model (Zeus §7). One owner.
class GaussianThompson {
 public:
  struct Options {
    int window = 0;  // The latest observations of an arm that count; 0: all.
    // Of the reward, which is minus the cost in joules. Precision 0: a flat prior.
    double prior_mean = 0.0;
    double prior_precision = 0.0;
    int explorations = 2;  // Observations an arm needs before its belief is sampled.
  };

  GaussianThompson(std::span<const int> batch_sizes, const Options& options);

  // One of the arms; a cost in units of the epoch cost.
  void Observe(int batch_size, double cost, bool converged);

  const CostSamples& samples(int batch_size) const { return samples_.at(batch_size); }
  // nullopt when nothing is known and the prior is flat.
  std::optional<CostBelief> Belief(int batch_size, Joules epoch_cost) const;

  // The arm whose sampled mean cost is least. Arms that need more observations come first, in
  // random order. Epoch costs are those of all batch sizes, here and below.
  int Predict(std::span<const int> arms, std::span<const Joules> epoch_costs, Random& random) const;
  // The arm whose mean cost is believed to be least.
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
