#pragma once

#include <memory>

#include "examples/training/learner.h"
#include "examples/training/network.h"

namespace zeus::examples {

// Classifies digits in noisy images (dataset.h).
std::unique_ptr<Learner> MakeTorchCnn(const CnnShape& shape, const Recipe& recipe);
// Finds the letter that follows the marker in a sequence.
std::unique_ptr<Learner> MakeTorchTransformer(const TransformerShape& shape, const Recipe& recipe);

}  // namespace zeus::examples
