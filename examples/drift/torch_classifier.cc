// This is the only file of the example that includes torch, whose headers are slow to compile.
#include "examples/drift/torch_classifier.h"

#include <torch/torch.h>

#include <utility>

namespace zeus::examples {
namespace {

struct Examples {
  torch::Tensor features;
  torch::Tensor labels;
};

Examples Load(Samples samples) {
  const auto count = static_cast<std::int64_t>(samples.labels.size());
  return {torch::from_blob(samples.features.data(), {count, kFeatures}).clone(),
          torch::from_blob(samples.labels.data(), {count}, torch::kInt64).clone()};
}

double Accuracy(torch::nn::Linear& network, const Examples& examples) {
  const torch::NoGradGuard no_gradients;
  return network->forward(examples.features)
      .argmax(1)
      .eq(examples.labels)
      .to(torch::kDouble)
      .mean()
      .item<double>();
}

}  // namespace

std::optional<int> EpochsToTarget(const ClassifierRun& run) {
  torch::set_num_threads(1);
  torch::manual_seed(run.seed);
  const Random random(run.seed);
  const Examples training =
      Load(DrawSamples(run.slice, run.training_samples, Labels::kNoisy, random.Fork("training")));
  const Examples validation = Load(
      DrawSamples(run.slice, run.validation_samples, Labels::kRight, random.Fork("validation")));
  torch::nn::Linear network(kFeatures, kClasses);
  torch::optim::SGD optimizer(network->parameters(), torch::optim::SGDOptions(run.learning_rate));
  for (int epoch = 1; epoch <= run.max_epochs; ++epoch) {
    const torch::Tensor order =
        torch::randperm(static_cast<std::int64_t>(run.training_samples), torch::kInt64);
    for (const torch::Tensor& chosen : order.split(run.batch_size)) {
      optimizer.zero_grad();
      torch::cross_entropy_loss(network->forward(training.features.index_select(0, chosen)),
                                training.labels.index_select(0, chosen))
          .backward();
      optimizer.step();
    }
    if (Accuracy(network, validation) >= run.target) return epoch;
  }
  return std::nullopt;
}

}  // namespace zeus::examples
