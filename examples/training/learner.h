#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace zeus::examples {

// A network with its data that really learns, on one core of this CPU. The same seed and the same
// batches give bit-identical results. Not thread-safe.
class Learner {
 public:
  virtual ~Learner() = default;

  virtual std::size_t training_samples() const = 0;
  virtual std::size_t validation_samples() const = 0;

  // Performs one optimiser step on these training samples and returns the mean loss before it.
  virtual double TrainStep(std::span<const std::int64_t> samples) = 0;

  // Returns the share of validation samples that are classified correctly.
  virtual double Validate() = 0;
};

struct Recipe {
  std::uint64_t seed = 1;
  std::size_t training_samples = 0;
  std::size_t validation_samples = 0;
  double learning_rate = 0;
};

}  // namespace zeus::examples
