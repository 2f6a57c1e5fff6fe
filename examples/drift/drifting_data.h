#pragma once

#include <cstdint>
#include <vector>

#include "zeus/base/random.h"

namespace zeus::examples {

inline constexpr int kFeatures = 16;
inline constexpr int kClasses = 5;

// The data of a slice of time: where the centres of the classes lie, and the scale of the features.
struct DataSlice {
  double angle = 0;  // Radians by which the centres of the classes have turned.
  double scale = 1;  // Factor of all features.
};

// The first third of `count` slices is like `begin`, the last third like `end`, and in between
// everything moves steadily. A larger scale makes every step of the training larger. While the
// scale is small, small batches arrive first because they take many steps; later they oscillate
// around the optimum that large ones reach.
struct Drift {
  DataSlice begin{.angle = 0, .scale = 0.35};
  DataSlice end{.angle = 1.5, .scale = 1.3};
  int count = 38;

  DataSlice At(int slice) const;
};

struct Samples {
  std::vector<float> features;  // kFeatures for each sample.
  std::vector<std::int64_t> labels;
};

enum class Labels { kRight, kNoisy };  // kNoisy: some of them are wrong.

// Draws the same samples from the same stream of random numbers.
Samples DrawSamples(const DataSlice& slice, std::size_t count, Labels labels, Random random);

}  // namespace zeus::examples
