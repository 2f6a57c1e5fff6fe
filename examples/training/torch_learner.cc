// This is the only file that includes torch: its headers take half a minute and a gigabyte to
// compile.
#include "examples/training/torch_learner.h"

#include <torch/torch.h>

#include <utility>

#include "examples/training/dataset.h"

namespace zeus::examples {
namespace {

struct Examples {
  torch::Tensor inputs;
  torch::Tensor labels;
};

torch::Tensor Labels(std::vector<std::int64_t> labels) {
  const auto count = static_cast<std::int64_t>(labels.size());
  return torch::from_blob(labels.data(), {count}, torch::kInt64).clone();
}

Examples Load(Images images) {
  const auto count = static_cast<std::int64_t>(images.labels.size());
  return {torch::from_blob(images.pixels.data(), {count, 1, kImageSide, kImageSide}).clone(),
          Labels(std::move(images.labels))};
}

Examples Load(Sequences sequences) {
  const auto count = static_cast<std::int64_t>(sequences.labels.size());
  const auto length = static_cast<std::int64_t>(sequences.tokens.size()) / count;
  return {torch::from_blob(sequences.tokens.data(), {count, length}, torch::kInt64).clone(),
          Labels(std::move(sequences.labels))};
}

struct CnnNetwork final : torch::nn::Module {
  explicit CnnNetwork(const CnnShape& shape)
      : first(register_module("first", Convolution(1, shape.channels))),
        second(register_module("second", Convolution(shape.channels, 2 * shape.channels))),
        output(register_module(
            "output",
            torch::nn::Linear(shape.side * shape.side / 16 * 2 * shape.channels, shape.classes))) {}

  static torch::nn::Conv2d Convolution(int in, int out) {
    return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1));
  }

  torch::Tensor forward(const torch::Tensor& images) {
    torch::Tensor x = torch::max_pool2d(torch::relu(first->forward(images)), 2);
    x = torch::max_pool2d(torch::relu(second->forward(x)), 2);
    return output->forward(x.flatten(1));
  }

  torch::nn::Conv2d first;
  torch::nn::Conv2d second;
  torch::nn::Linear output;
};

struct TransformerNetwork final : torch::nn::Module {
  explicit TransformerNetwork(const TransformerShape& shape)
      : tokens(register_module("tokens", torch::nn::Embedding(shape.tokens, shape.width))),
        positions(register_module("positions", torch::nn::Embedding(shape.length, shape.width))),
        encoder(register_module(
            "encoder", torch::nn::TransformerEncoder(torch::nn::TransformerEncoderOptions(
                           torch::nn::TransformerEncoderLayerOptions(shape.width, shape.heads)
                               .dim_feedforward(shape.feed_forward)
                               .dropout(0),
                           shape.layers)))),
        output(register_module("output", torch::nn::Linear(shape.width, shape.classes))) {}

  torch::Tensor forward(const torch::Tensor& sequences) {
    const torch::Tensor embedded =
        tokens->forward(sequences) + positions->forward(torch::arange(sequences.size(1)));
    // The encoder expects [position][sample].
    return output->forward(encoder->forward(embedded.transpose(0, 1)).mean(0));
  }

  torch::nn::Embedding tokens;
  torch::nn::Embedding positions;
  torch::nn::TransformerEncoder encoder;
  torch::nn::Linear output;
};

template <class Network>
class TorchLearner final : public Learner {
 public:
  template <class Shape>
  TorchLearner(const Shape& shape, Examples training, Examples validation, double learning_rate)
      : network_(shape),
        training_(std::move(training)),
        validation_(std::move(validation)),
        optimizer_(network_.parameters(), torch::optim::AdamOptions(learning_rate)) {}

  std::size_t training_samples() const override {
    return static_cast<std::size_t>(training_.labels.size(0));
  }
  std::size_t validation_samples() const override {
    return static_cast<std::size_t>(validation_.labels.size(0));
  }

  double TrainStep(std::span<const std::int64_t> samples) override {
    network_.train();
    const torch::Tensor chosen =
        torch::tensor(torch::ArrayRef<std::int64_t>(samples.data(), samples.size()), torch::kInt64);
    optimizer_.zero_grad();
    const torch::Tensor guess = network_.forward(training_.inputs.index_select(0, chosen));
    const torch::Tensor loss =
        torch::cross_entropy_loss(guess, training_.labels.index_select(0, chosen));
    loss.backward();
    optimizer_.step();
    return loss.template item<double>();
  }

  double Validate() override {
    const torch::NoGradGuard no_gradients;
    network_.eval();
    const torch::Tensor guess = network_.forward(validation_.inputs).argmax(1);
    return guess.eq(validation_.labels).to(torch::kDouble).mean().template item<double>();
  }

 private:
  Network network_;
  Examples training_;
  Examples validation_;
  torch::optim::Adam optimizer_;
};

// More threads would add in another order on another machine.
void PrepareTorch(std::uint64_t seed) {
  torch::set_num_threads(1);
  torch::manual_seed(seed);
}

}  // namespace

std::unique_ptr<Learner> MakeTorchCnn(const CnnShape& shape, const Recipe& recipe) {
  PrepareTorch(recipe.seed);
  const Random random(recipe.seed);
  return std::make_unique<TorchLearner<CnnNetwork>>(
      shape, Load(RenderDigits(recipe.training_samples, random.Fork("training"))),
      Load(RenderDigits(recipe.validation_samples, random.Fork("validation"))),
      recipe.learning_rate);
}

std::unique_ptr<Learner> MakeTorchTransformer(const TransformerShape& shape, const Recipe& recipe) {
  PrepareTorch(recipe.seed);
  const Random random(recipe.seed);
  return std::make_unique<TorchLearner<TransformerNetwork>>(
      shape, Load(WriteSequences(recipe.training_samples, random.Fork("training"))),
      Load(WriteSequences(recipe.validation_samples, random.Fork("validation"))),
      recipe.learning_rate);
}

}  // namespace zeus::examples
