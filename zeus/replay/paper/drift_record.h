#pragma once

#include <optional>
#include <vector>

namespace zeus::replay::paper {

// Epochs to the target of a small classifier that was really trained on 38 slices of data that
// drift (docs/batch-size-drift.md), in place of the paper's Capriccio, which is not public.
inline constexpr int kDriftSlices = 38;
inline constexpr int kDriftMaxEpochs = 60;
inline constexpr int kDriftDefaultBatchSize = 32;

// One per training; nullopt: the target was not reached. Empty for a batch size that was not tried.
std::vector<std::optional<int>> DriftingEpochs(int slice, int batch_size);

}  // namespace zeus::replay::paper
