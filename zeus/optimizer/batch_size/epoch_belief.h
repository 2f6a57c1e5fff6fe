#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/batch_size/epoch_cost_table.h"
#include "zeus/optimizer/batch_size/job_prior.h"

namespace zeus {

// A belief about the cost of one epoch: a normal distribution of the natural logarithm of joules.
struct EpochCostBelief {
  double log_cost = 0.0;
  double sigma = 0.0;
  bool profiled = false;  // Measured on this GPU model, and so exact (sigma 0).
};

// Returns one belief per batch size (ascending): as measured on this GPU model, else translated
// from another model, else from the neighbours by the curve A / b + C. An epoch has 1 / b steps per
// sample, each with a fixed cost (A), and a cost per sample that does not depend on b (C). Returns
// nullopt for all while nothing was measured anywhere.
std::vector<std::optional<EpochCostBelief>> BelieveEpochCosts(const EpochCostTable& table,
                                                              std::string_view gpu_model,
                                                              std::span<const int> batch_sizes);

// A belief about f(b), the natural logarithm of the number of epochs to the target with batch size
// b: a Gaussian process over log2 b. Batch sizes near each other need about the same number of
// epochs, larger ones rather more. So a run with one batch size also teaches something about its
// neighbours, which separate arms of a bandit could not share. Immutable.
class EpochBelief {
 public:
  // A noisy observation of f(b), as a normal distribution.
  struct Evidence {
    double log_epochs = 0.0;
    double variance = 0.0;
    // Variance of an error that all evidence with this member has in common: evidence of other jobs
    // knows the shape of the curve better than its level.
    double shared = 0.0;
  };
  struct Posterior {
    double mean = 0.0;
    double variance = 0.0;
  };

  // Batch sizes ascending; the default is one of them.
  EpochBelief(std::span<const int> batch_sizes, int default_batch_size);

  // Returns f(b) given the evidence of this job and of other jobs. All have one element per batch
  // size; `others` may be empty.
  std::vector<Posterior> Update(std::span<const std::optional<Evidence>> evidence,
                                std::span<const std::optional<Evidence>> others = {}) const;

 private:
  std::vector<double> mean_{};        // Prior mean, relative to the default batch size.
  std::vector<double> covariance_{};  // Prior covariance, row by row; the unknown level included.
};

// Statistics of the runs with one batch size: how many epochs they needed to the target.
struct ArmEpochs {
  std::int64_t runs = 0;
  std::int64_t converged = 0;
  bool ever_converged = false;  // True also if that run has left the window.
  // Statistics of ln epochs since the last drift, over the runs that converged and over those that
  // failed after the batch size had converged once.
  std::int64_t results = 0;
  double mean = 0.0;
  double squares = 0.0;  // Sum of squared deviations from the mean.
  // Sum of squares and degrees of freedom from before the last drift. They still count for the
  // noise, which a drift does not change.
  double older_squares = 0.0;
  std::int64_t older_freedom = 0;
  // The results from before the last drift, with a variance that was widened by the drift.
  std::optional<EpochBelief::Evidence> stale{};
  // ln epochs of the latest run, if that run was surprising.
  std::optional<double> surprise{};
  // The rest is about a batch size that has not converged yet.
  int longest_stop = 0;  // Epochs of the longest run that was stopped.
  int stops = 0;         // Runs that were stopped.
  double spent = 0.0;    // Cost of those runs, in units of the epoch cost.
  bool dropped = false;  // The batch size is not worth another try.
};

// A run as the history keeps it.
struct RunRecord {
  std::int64_t recurrence = 0;
  std::size_t arm = 0;  // Index of the batch size.
  bool converged = false;
  int epochs = 0;
  double spent = 0.0;       // In units of the epoch cost.
  bool drops = false;       // The batch size is not worth another try.
  bool surprising = false;  // Outside the interval in which 99 % of such runs were expected.
};

// The results of a job's runs, by batch size: those of the latest `window` recurrences, or of all
// (window 0), of which only sums are kept. Two surprising runs in a row with one batch size are
// taken for a drift of the data: earlier results count little from then on, and dropped batch sizes
// may be tried again. One owner.
class EpochHistory {
 public:
  EpochHistory(std::size_t arms, int window) : window_(window), arms_(arms) {}
  // Begins with what other jobs of the kind found.
  EpochHistory(const JobPrior& prior, std::size_t arms, int window);

  void Add(const RunRecord& run);

  std::span<const ArmEpochs> arms() const { return arms_; }
  // Whether the batch size counts as one that reaches the target because it did in other jobs. No
  // longer so after a run of this job that contradicts them.
  bool Assumes(std::size_t arm) const {
    return trust_ == PriorTrust::kFull && arm < others_.size() && others_[arm].has_value() &&
           assumed_[arm];
  }
  // Believes other jobs no longer.
  void ForgetOthers() { trust_ = PriorTrust::kNone; }
  // The evidence of other jobs, by batch size; empty if there is none.
  std::vector<std::optional<EpochBelief::Evidence>> EvidenceOfOthers() const;
  // The variance of ln epochs between runs of one batch size, pooled over all batch sizes.
  double NoiseVariance() const;
  // Returns what EpochBelief learns from each batch size; nullopt if there is nothing to learn.
  std::vector<std::optional<EpochBelief::Evidence>> AllEvidence() const;

  // Returns ln epochs of a run. For a run that did not converge, a bit is added: it would have
  // needed more epochs than it had.
  static double LogEpochs(const RunRecord& run);

  Json Save() const;
  Status Restore(const Json& state);

 private:
  void Apply(const RunRecord& run);
  void HandleDrift();
  Status RestoreTrust(const Json& state);

  // Other jobs of the kind are trusted until a run contradicts them, then only the shape of their
  // curve is, with wider errors, and after a drift nothing.
  enum class PriorTrust { kNone, kShape, kFull };

  int window_;
  std::vector<ArmEpochs> arms_;
  PriorTrust trust_ = PriorTrust::kNone;
  std::vector<std::optional<EpochBelief::Evidence>> others_{};
  std::vector<bool> assumed_{};
  double others_squares_ = 0.0;  // Noise of the other jobs, as in ArmEpochs::older_squares.
  std::int64_t others_freedom_ = 0;
  std::deque<RunRecord> latest_{};  // The runs in the window; empty without one.
};

// Returns the variance to assume between runs of a batch size with few results, when the pooled
// variance is `noise`.
double CautiousNoise(double noise);

}  // namespace zeus
