#include "zeus/replay/paper/drift_record.h"

#include <algorithm>
#include <array>

namespace zeus::replay::paper {
namespace {

constexpr std::array<int, 5> kBatchSizes = {8, 16, 32, 64, 128};
constexpr int kRepetitions = 3;

// A row per slice: 3 trainings with each batch size, in their order; 0: the target was not reached.
// Written by `drift_study --table FILE` (examples/drift).
constexpr std::array<std::array<int, kBatchSizes.size() * kRepetitions>, kDriftSlices> kEpochs = {{
    {8, 5, 5, 10, 6, 6, 13, 7, 7, 17, 9, 10, 22, 13, 15},
    {7, 11, 12, 10, 17, 14, 15, 22, 19, 20, 34, 28, 29, 46, 38},
    {10, 7, 8, 13, 11, 12, 17, 13, 17, 27, 23, 22, 39, 29, 30},
    {5, 7, 4, 8, 9, 6, 10, 10, 7, 16, 13, 11, 21, 20, 15},
    {6, 10, 10, 7, 13, 10, 8, 16, 14, 15, 21, 18, 17, 32, 28},
    {5, 5, 8, 8, 8, 8, 10, 9, 13, 13, 12, 17, 18, 18, 23},
    {7, 6, 13, 8, 9, 21, 11, 10, 30, 15, 17, 54, 21, 22, 0},
    {12, 11, 7, 14, 19, 8, 17, 20, 11, 25, 30, 15, 33, 47, 20},
    {5, 5, 9, 12, 7, 9, 12, 9, 12, 18, 11, 20, 24, 17, 29},
    {5, 8, 5, 6, 8, 7, 10, 10, 12, 13, 14, 14, 20, 20, 20},
    {6, 6, 6, 8, 8, 7, 8, 11, 9, 12, 16, 14, 17, 24, 19},
    {7, 5, 7, 10, 7, 10, 12, 12, 16, 16, 14, 21, 24, 18, 29},
    {6, 7, 7, 7, 12, 9, 9, 14, 10, 13, 19, 12, 17, 27, 18},
    {6, 5, 5, 6, 9, 6, 9, 11, 9, 12, 14, 11, 16, 18, 16},
    {3, 3, 5, 4, 5, 6, 5, 6, 7, 6, 9, 10, 9, 13, 15},
    {2, 4, 7, 4, 6, 7, 4, 7, 7, 6, 10, 11, 7, 13, 15},
    {3, 3, 7, 4, 3, 6, 4, 5, 7, 6, 6, 8, 7, 7, 11},
    {3, 3, 2, 3, 3, 2, 7, 4, 4, 9, 5, 4, 9, 7, 5},
    {3, 5, 9, 3, 4, 6, 3, 4, 6, 4, 4, 6, 5, 5, 6},
    {4, 3, 4, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 3, 4},
    {9, 4, 2, 3, 2, 4, 3, 2, 3, 3, 2, 3, 4, 3, 5},
    {7, 5, 1, 4, 4, 2, 4, 3, 2, 3, 3, 3, 4, 4, 3},
    {2, 10, 10, 2, 10, 5, 2, 7, 3, 2, 5, 2, 2, 5, 3},
    {0, 15, 0, 20, 15, 5, 14, 5, 4, 6, 5, 3, 6, 5, 4},
    {0, 45, 15, 5, 12, 4, 2, 3, 4, 2, 3, 2, 2, 3, 4},
    {0, 0, 0, 59, 3, 51, 59, 3, 5, 4, 3, 5, 3, 3, 5},
    {0, 0, 2, 0, 0, 2, 0, 19, 2, 3, 2, 2, 4, 2, 2},
    {0, 52, 0, 10, 52, 8, 7, 4, 4, 3, 4, 2, 3, 3, 2},
    {0, 0, 0, 0, 0, 5, 0, 58, 5, 0, 16, 2, 22, 7, 2},
    {0, 0, 0, 6, 7, 8, 2, 5, 4, 2, 5, 3, 2, 4, 3},
    {0, 0, 0, 0, 4, 0, 6, 4, 14, 2, 4, 13, 3, 4, 8},
    {15, 0, 0, 14, 4, 38, 3, 4, 7, 3, 3, 5, 3, 3, 5},
    {0, 0, 0, 20, 33, 8, 18, 8, 5, 3, 5, 5, 3, 5, 4},
    {0, 0, 0, 30, 4, 14, 4, 4, 5, 3, 3, 4, 3, 3, 4},
    {0, 0, 0, 0, 27, 0, 4, 14, 12, 4, 3, 8, 4, 3, 7},
    {0, 0, 0, 7, 38, 11, 2, 4, 2, 2, 4, 2, 2, 4, 2},
    {0, 0, 0, 0, 5, 0, 14, 3, 26, 5, 3, 9, 5, 3, 4},
    {0, 0, 31, 8, 52, 5, 3, 3, 2, 3, 2, 2, 3, 3, 2},
}};

}  // namespace

std::vector<std::optional<int>> DriftingEpochs(int slice, int batch_size) {
  const auto place = std::ranges::find(kBatchSizes, batch_size);
  if (place == kBatchSizes.end()) return {};
  const auto first = static_cast<std::size_t>(place - kBatchSizes.begin()) * kRepetitions;
  std::vector<std::optional<int>> epochs;
  for (std::size_t i = first; i < first + kRepetitions; ++i) {
    const int needed = kEpochs[static_cast<std::size_t>(slice)][i];
    epochs.push_back(needed > 0 ? std::optional(needed) : std::nullopt);
  }
  return epochs;
}

}  // namespace zeus::replay::paper
