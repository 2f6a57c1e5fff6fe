#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"

namespace zeus::replay {

// A training job of the paper (Zeus, Table 1) with the names that its rows have in the traces.
struct WorkloadKey {
  std::string_view label;  // Used by commands: "deepspeech2".
  std::string_view title;  // Used by figures: "DeepSpeech2".
  std::string_view dataset;
  std::string_view network;
  std::string_view optimizer;
  double target;
  int max_epochs;
  int default_batch_size;
};

// Returns the workloads in the order of the paper.
std::span<const WorkloadKey> PaperWorkloads();

// Finds a workload by its label. kInvalidArgument lists the labels.
Result<const WorkloadKey*> FindWorkload(std::string_view label);

}  // namespace zeus::replay
