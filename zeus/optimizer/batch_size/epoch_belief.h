#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "zeus/optimizer/batch_size/epoch_cost_table.h"

namespace zeus {

// What is believed about the cost of one epoch, as a logarithm (of joules).
struct EpochCostBelief {
  double log_cost = 0.0;
  double sigma = 0.0;
  bool profiled = false;  // Measured on this GPU model, and so exact.
};

// One per batch size (ascending): as measured on this GPU model, else translated from another one,
// else by the curve A / b + C that work per step and work per sample make. nullopt while nothing
// was measured anywhere.
std::vector<std::optional<EpochCostBelief>> BelieveEpochCosts(const EpochCostTable& table,
                                                              std::string_view gpu_model,
                                                              std::span<const int> batch_sizes);

// A belief about f(b), the logarithm of the number of epochs to the target with batch size b: a
// Gaussian process over log2 b. Batch sizes near each other need about the same number of epochs,
// larger ones rather more. Immutable.
class EpochBelief {
 public:
  struct Evidence {
    double log_epochs = 0.0;
    double variance = 0.0;
  };
  struct Posterior {
    double mean = 0.0;
    double variance = 0.0;
  };

  // Batch sizes ascending; the default is one of them.
  EpochBelief(std::span<const int> batch_sizes, int default_batch_size);

  // One per batch size. `evidence` has one place per batch size, too.
  std::vector<Posterior> Update(std::span<const std::optional<Evidence>> evidence) const;

 private:
  std::vector<double> mean_{};        // A priori, up to a level that is flat.
  std::vector<double> covariance_{};  // Row by row.
};

}  // namespace zeus
