#include "examples/drift/drifting_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace zeus::examples {
namespace {

constexpr double kSpread = 0.29;  // Standard deviation around the centre of a class.
constexpr double kUninformativeSpread =
    1;                               // Standard deviation of the features without information.
constexpr double kLabelNoise = 0.2;  // Share of labels that are drawn at random.

}  // namespace

DataSlice Drift::At(int slice) const {
  const double third = count / 3.0;
  const double progress = std::clamp((slice - third) / third, 0.0, 1.0);
  return {.angle = std::lerp(begin.angle, end.angle, progress),
          .scale = std::lerp(begin.scale, end.scale, progress)};
}

Samples DrawSamples(const DataSlice& slice, std::size_t count, Labels labels, Random random) {
  Samples samples;
  samples.features.reserve(count * kFeatures);
  for (std::size_t i = 0; i < count; ++i) {
    const auto label = static_cast<int>(random.Below(kClasses));
    // The centres lie on a circle in the first two dimensions; the others carry no information.
    const double angle = slice.angle + 2 * std::numbers::pi * label / kClasses;
    const std::array<double, 2> centre{std::cos(angle), std::sin(angle)};
    for (std::size_t feature = 0; feature < kFeatures; ++feature) {
      const bool tells = feature < centre.size();
      const double value = tells ? centre[feature] + kSpread * random.Normal()
                                 : kUninformativeSpread * random.Normal();
      samples.features.push_back(static_cast<float>(slice.scale * value));
    }
    const bool wrong = labels == Labels::kNoisy && random.Uniform() < kLabelNoise;
    samples.labels.push_back(wrong ? static_cast<std::int64_t>(random.Below(kClasses)) : label);
  }
  return samples;
}

}  // namespace zeus::examples
