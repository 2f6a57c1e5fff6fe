#pragma once

#include <optional>
#include <span>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/by_batch_size.h"

namespace zeus {

// The cheapest recurrence that reached the target: what early stopping compares with, and the best
// batch size known. A run that did not converge never counts, however cheap it was. With a window,
// only the latest results of the job count: after a drift that makes everything dearer, the old
// cost would stop every run for ever. One owner.
class LeastCost {
 public:
  struct Recurrence {
    int batch_size = 0;
    Joules cost{};
  };

  explicit LeastCost(int window) : window_(window) {}

  // The cost of a recurrence that converged with `batch_size`, in units of the epoch cost.
  void Add(int batch_size, double cost);
  // A result without convergence; it only takes its place in the window.
  void AddFailure();

  // As it would be on a GPU model where epochs with the job's batch sizes cost so much; nullopt
  // when nothing converged, or no epoch cost is known.
  std::optional<Recurrence> At(std::span<const int> batch_sizes,
                               std::span<const Joules> epoch_costs) const;

  Json Save() const;
  static Result<LeastCost> Restore(int window, std::span<const int> batch_sizes, const Json& state);

 private:
  struct Entry {
    int batch_size = 0;  // 0: a failure.
    double cost = 0.0;
  };

  void Forget();

  int window_;
  ByBatchSize<double> least_{};  // Without a window.
  std::vector<Entry> latest_{};  // With one.
};

}  // namespace zeus
