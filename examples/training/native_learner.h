#pragma once

#include <memory>

#include "examples/training/learner.h"
#include "examples/training/network.h"

namespace zeus::examples {

// Classifies digits in noisy images (dataset.h) with the network of native_cnn.h.
std::unique_ptr<Learner> MakeNativeCnn(const CnnShape& shape, const Recipe& recipe);

}  // namespace zeus::examples
