#pragma once

#include <cstdint>
#include <optional>

#include "examples/drift/drifting_data.h"

namespace zeus::examples {

// How a classifier is trained on one slice.
struct ClassifierRun {
  DataSlice slice{};
  int batch_size = 0;
  double learning_rate = 0;
  std::uint64_t seed = 1;
  std::size_t training_samples = 0;
  std::size_t validation_samples = 0;
  double target = 0;  // Validation accuracy.
  int max_epochs = 0;
};

// Really trains with torch, on one core. Returns the number of epochs after which the accuracy on
// samples with right labels reached the target; nullopt if it never did.
std::optional<int> EpochsToTarget(const ClassifierRun& run);

}  // namespace zeus::examples
