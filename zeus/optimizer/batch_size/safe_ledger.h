#pragma once

#include <cstdint>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"

namespace zeus {

// Keeps a job from costing more than the default batch size would have: all recurrences together
// cost at most (1 + share) times as much, with 95 % confidence. A run with the default batch size
// is what would have been done anyway, so it adds nothing to the excess and enlarges what may be
// risked by its share. A run with another one is allowed when even at the bad end of its expected
// cost the total keeps to the bound. So savings pay for exploring. Costs are in units of an epoch
// with the default batch size. One owner.
class SafeLedger {
 public:
  // How many epochs the default is expected to need.
  struct Default {
    double log_epochs = 0.0;
    double variance = 0.0;  // The variance of the belief about log_epochs.
    double noise = 0.0;     // The variance of ln epochs between runs.
  };
  // A run with another batch size.
  struct Risk {
    double log_cost = 0.0;
    double variance = 0.0;  // The variance of ln cost of the next run, noise included.
    double extra = 0.0;     // Cost of profiling.
  };

  // `share` is how much more than the default everything may cost.
  explicit SafeLedger(double share) : share_(share) {}

  bool Allows(const Default& usual, const Risk& risk) const;
  // Returns the cost that a try may have which may have to be followed by a run of the default.
  double Allowance(const Default& usual) const;

  // A run with the default batch size reached the target.
  void AddDefaultRun(double cost);
  // A run with another batch size; `converged`: it replaced a run with the default.
  void AddOtherRun(double cost, bool converged);
  // A risk was taken: later ones are taken with more caution, so that all together are as rare as
  // stated.
  void CountRisk() { ++risks_; }

  Json Save() const;
  Status Restore(const Json& state);

 private:
  double Quantile() const;

  double share_;
  double own_ = 0.0;           // Cost of converged runs with the default.
  double spent_ = 0.0;         // Cost of runs with other batch sizes.
  std::int64_t replaced_ = 0;  // Runs with the default that others have replaced.
  std::int64_t risks_ = 0;
};

}  // namespace zeus
