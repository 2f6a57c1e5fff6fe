#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "zeus/optimizer/batch_size/epoch_cost_table.h"

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
  };
  struct Posterior {
    double mean = 0.0;
    double variance = 0.0;
  };

  // Batch sizes ascending; the default is one of them.
  EpochBelief(std::span<const int> batch_sizes, int default_batch_size);

  // Returns f(b) given the evidence. Both have one element per batch size.
  std::vector<Posterior> Update(std::span<const std::optional<Evidence>> evidence) const;

 private:
  std::vector<double> mean_{};        // Prior mean, relative to the default batch size.
  std::vector<double> covariance_{};  // Prior covariance, row by row; the unknown level included.
};

}  // namespace zeus
