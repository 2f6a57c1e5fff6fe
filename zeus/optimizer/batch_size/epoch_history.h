#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/batch_size/epoch_belief.h"

namespace zeus {

// What runs with one batch size have shown about the number of epochs to the target.
struct ArmEpochs {
  std::int64_t runs = 0;
  std::int64_t converged = 0;
  bool ever_converged = false;  // Also in a run that has left the window.
  // Of ln epochs, since the last drift: of runs that converged, and of runs that did not although
  // the batch size had before.
  std::int64_t results = 0;
  double mean = 0.0;
  double squares = 0.0;  // Sum of squared deviations from the mean.
  // Squares and degrees of freedom from before the last drift: the noise is the same.
  double older_squares = 0.0;
  std::int64_t older_freedom = 0;
  // What the results from before the last drift still say.
  std::optional<EpochBelief::Evidence> stale{};
  // Of the latest run, if it was outside what was expected.
  std::optional<double> surprise{};
  // Of a batch size that has not converged yet.
  int longest_stop = 0;  // Epochs.
  int stops = 0;
  double spent = 0.0;  // In units of the epoch cost.
  bool dropped = false;
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

// What runs have shown, by batch size: those of the latest `window` recurrences, or all (window 0),
// of which only sums are kept. Two surprising runs in a row with one batch size are taken for a
// drift of the data: what was learned before counts little from then on, and dropped batch sizes
// may be tried again. One owner.
class EpochHistory {
 public:
  EpochHistory(std::size_t arms, int window) : window_(window), arms_(arms) {}

  void Add(const RunRecord& run);

  std::span<const ArmEpochs> arms() const { return arms_; }
  // The noise of ln epochs between runs of one batch size, pooled over all of them: its variance.
  double NoiseVariance() const;
  // What the process over batch sizes learns from each.
  std::vector<std::optional<EpochBelief::Evidence>> AllEvidence() const;

  // ln epochs of a run; a run that did not converge would have needed more.
  static double LogEpochs(const RunRecord& run);

  Json Save() const;
  Status Restore(const Json& state);

 private:
  void Apply(const RunRecord& run);
  void Drift();

  int window_;
  std::vector<ArmEpochs> arms_;
  std::deque<RunRecord> latest_{};  // Empty without a window.
};

// The variance between runs of a batch size with few results, when the pooled one is `noise`.
double CautiousNoise(double noise);

}  // namespace zeus
