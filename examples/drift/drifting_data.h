#pragma once

#include <cstdint>
#include <vector>

#include "zeus/base/random.h"

namespace zeus::examples {

inline constexpr int kFeatures = 64;
inline constexpr int kClasses = 5;

// What a slice of time looks like: where the classes are, and how well they can be told apart.
struct DataSlice {
  double angle = 0;        // By which the centres of the classes have turned, in radians.
  double spread = 0.3;     // Standard deviation of the samples around them.
  double distraction = 1;  // That of the features that tell nothing.
  double label_noise = 0;  // Share of the labels that are wrong.
};

// Of `count` slices the first third is as at the beginning and the last third as at the end; in
// between everything moves steadily.
struct Drift {
  DataSlice begin{.angle = 0, .distraction = 0.1, .label_noise = 0.0};
  DataSlice end{.angle = 1.5, .distraction = 1.0, .label_noise = 0.2};
  int count = 38;

  DataSlice At(int slice) const;
};

struct Samples {
  std::vector<float> features;  // kFeatures for each.
  std::vector<std::int64_t> labels;
};

// The same from the same stream of random numbers.
Samples DrawSamples(const DataSlice& slice, std::size_t count, Random random);

}  // namespace zeus::examples
