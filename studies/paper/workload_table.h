#pragma once

#include <array>
#include <string_view>

// Tables 1 and 2 of the paper as it prints them; of the hosts only what concerns the GPUs.
namespace zeus::replay::paper {

struct PaperWorkload {
  std::string_view label;
  std::string_view task;
  std::string_view dataset;
  std::string_view model;
  std::string_view optimizer;
  int default_batch_size;
  std::string_view target;
};

inline constexpr std::array kPaperWorkloads = {
    PaperWorkload{"deepspeech2", "speech recognition", "LibriSpeech", "DeepSpeech2", "AdamW", 192,
                  "WER = 40.0 %"},
    PaperWorkload{"bert_qa", "question answering", "SQuAD", "BERT (QA)", "AdamW", 32, "F1 = 84.0"},
    PaperWorkload{"bert_sa", "sentiment analysis", "Sentiment140", "BERT (SA)", "AdamW", 128,
                  "accuracy = 84 %"},
    PaperWorkload{"resnet50", "image classification", "ImageNet", "ResNet-50", "Adadelta", 256,
                  "accuracy = 65 %"},
    PaperWorkload{"shufflenet", "image classification", "CIFAR-100", "ShuffleNet-v2", "Adadelta",
                  1024, "accuracy = 60 %"},
    PaperWorkload{"neumf", "recommendation", "MovieLens-1M", "NeuMF", "Adam", 1024, "NDCG = 0.41"},
};

struct PaperGpu {
  std::string_view model;  // As the traces call it.
  std::string_view title;
  std::string_view memory;
  std::string_view architecture;
};

inline constexpr std::array kPaperGpus = {
    PaperGpu{"a40", "A40 PCIe", "48 GB", "Ampere"},
    PaperGpu{"v100", "V100 PCIe", "32 GB", "Volta"},
    PaperGpu{"rtx6000", "RTX6000", "24 GB", "Turing"},
    PaperGpu{"p100", "P100", "16 GB", "Pascal"},
};

}  // namespace zeus::replay::paper
