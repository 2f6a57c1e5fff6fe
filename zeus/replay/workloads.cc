#include "zeus/replay/workloads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "zeus/base/text.h"

namespace zeus::replay {
namespace {

constexpr std::array kWorkloads = {
    WorkloadKey{"deepspeech2", "DeepSpeech2", "librispeech", "deepspeech2", "adamw", 40.0, 16, 192},
    WorkloadKey{"bert_qa", "BERT (QA)", "squad", "bert_base_uncased", "adamw", 84.0, 6, 32},
    WorkloadKey{"bert_sa", "BERT (SA)", "sentiment140", "bert_base_uncased", "adamw", 0.84, 10,
                128},
    WorkloadKey{"resnet50", "ResNet-50", "imagenet", "resnet50", "adadelta", 0.65, 100, 256},
    WorkloadKey{"shufflenet", "ShuffleNet V2", "cifar100", "shufflenetv2", "adadelta", 0.6, 100,
                1024},
    WorkloadKey{"neumf", "NeuMF", "movielens-1m", "ncf", "adam", 0.41, 100, 1024},
};

}  // namespace

std::span<const WorkloadKey> PaperWorkloads() { return kWorkloads; }

Result<const WorkloadKey*> FindWorkload(std::string_view label) {
  const auto* const found = std::ranges::find(kWorkloads, label, &WorkloadKey::label);
  if (found != kWorkloads.end()) return found;
  std::vector<std::string_view> known;
  for (const WorkloadKey& workload : kWorkloads) known.push_back(workload.label);
  return Error{ErrorCode::kInvalidArgument, fmt::format("workload is {}: it must be one of {}",
                                                        Quote(label), fmt::join(known, ", "))};
}

}  // namespace zeus::replay
