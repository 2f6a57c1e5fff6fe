#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"

namespace zeus::replay {

// A training job of the paper (Zeus, table 1), as the traces name its rows.
struct WorkloadKey {
  std::string_view label;  // What commands call it: "deepspeech2".
  std::string_view title;  // What figures call it: "DeepSpeech2".
  std::string_view dataset;
  std::string_view network;
  std::string_view optimizer;
  double target;
  int max_epochs;
  int default_batch_size;
};

// In the order of the paper.
std::span<const WorkloadKey> PaperWorkloads();

// By label. kInvalidArgument lists the labels.
Result<const WorkloadKey*> FindWorkload(std::string_view label);

}  // namespace zeus::replay
