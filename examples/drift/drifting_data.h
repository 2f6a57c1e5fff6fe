#pragma once

#include <cstdint>
#include <vector>

#include "zeus/base/random.h"

namespace zeus::examples {

inline constexpr int kFeatures = 16;
inline constexpr int kClasses = 5;

// What a slice of time looks like: where the classes are, and in which units they are told.
struct DataSlice {
  double angle = 0;  // By which the centres of the classes have turned, in radians.
  double scale = 1;  // Of all features.
};

// Of `count` slices the first third is as at the beginning and the last third as at the end; in
// between everything moves steadily. A larger scale makes every step of the training larger: small
// batches, whose steps are many, arrive first while it is small, and later wander around the aim
// that large ones reach.
struct Drift {
  DataSlice begin{.angle = 0, .scale = 0.35};
  DataSlice end{.angle = 1.5, .scale = 1.3};
  int count = 38;

  DataSlice At(int slice) const;
};

struct Samples {
  std::vector<float> features;  // kFeatures for each.
  std::vector<std::int64_t> labels;
};

enum class Labels { kRight, kNoisy };  // Of noisy ones some are wrong.

// The same from the same stream of random numbers.
Samples DrawSamples(const DataSlice& slice, std::size_t count, Labels labels, Random random);

}  // namespace zeus::examples
