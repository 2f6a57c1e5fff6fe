#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace zeus::replay {

// The workloads of the Zeus paper, and what they train on: cluster traces name the latter.
struct WorkloadName {
  std::string_view label;
  std::string_view dataset;
  std::string_view title;
};

inline constexpr std::array kWorkloadNames = {
    WorkloadName{"deepspeech2", "librispeech", "DeepSpeech2"},
    WorkloadName{"bert_qa", "squad", "BERT (QA)"},
    WorkloadName{"bert_sa", "sentiment140", "BERT (SA)"},
    WorkloadName{"resnet50", "imagenet", "ResNet-50"},
    WorkloadName{"shufflenet", "cifar100", "ShuffleNet V2"},
    WorkloadName{"neumf", "movielens-1m", "NeuMF"},
};

// The label of a workload by its data set, or by its label itself.
std::optional<std::string_view> WorkloadOf(std::string_view dataset);
// By label; the label itself if it is none of the above.
std::string_view DatasetOf(std::string_view label);
std::string_view TitleOf(std::string_view label);

}  // namespace zeus::replay
