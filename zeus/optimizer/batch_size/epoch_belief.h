#pragma once

#include <optional>
#include <span>
#include <vector>

namespace zeus {

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
