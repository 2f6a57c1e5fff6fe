#include "examples/training/native_learner.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "examples/training/dataset.h"
#include "examples/training/native_cnn.h"

namespace zeus::examples {
namespace {

// The optimiser of Kingma and Ba (2015), with the constants that they recommend.
class Adam {
 public:
  Adam(std::size_t parameters, double learning_rate)
      : learning_rate_(learning_rate), mean_(parameters), square_(parameters) {}

  void Step(std::span<const float> gradient, std::span<float> parameters) {
    initial_mean_weight_ *= kMeanDecay;
    initial_square_weight_ *= kSquareDecay;
    // Both averages start at 0; dividing by the weight of the gradients in them corrects for that.
    const auto rate = static_cast<float>(learning_rate_ / (1 - initial_mean_weight_));
    const auto scale = static_cast<float>(1 / std::sqrt(1 - initial_square_weight_));
    constexpr float kEpsilon = 1e-8F;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      mean_[i] = kMeanDecay * mean_[i] + (1 - kMeanDecay) * gradient[i];
      square_[i] = kSquareDecay * square_[i] + (1 - kSquareDecay) * gradient[i] * gradient[i];
      parameters[i] -= rate * mean_[i] / (std::sqrt(square_[i]) * scale + kEpsilon);
    }
  }

 private:
  static constexpr float kMeanDecay = 0.9F;
  static constexpr float kSquareDecay = 0.999F;

  double learning_rate_;
  double initial_mean_weight_ = 1;    // Weight of the initial zero in mean_.
  double initial_square_weight_ = 1;  // Weight of the initial zero in square_.
  std::vector<float> mean_;           // Moving average of the gradient.
  std::vector<float> square_;         // Moving average of its square.
};

class NativeLearner final : public Learner {
 public:
  NativeLearner(const CnnShape& shape, const Recipe& recipe, const Random& random)
      : network_(shape),
        training_(RenderDigits(recipe.training_samples, random.Fork("training"))),
        validation_(RenderDigits(recipe.validation_samples, random.Fork("validation"))),
        parameters_(network_.DrawParameters(random.Fork("weights"))),
        gradient_(parameters_.size()),
        optimizer_(parameters_.size(), recipe.learning_rate) {
    network_.Load(parameters_);
  }

  std::size_t training_samples() const override { return training_.labels.size(); }
  std::size_t validation_samples() const override { return validation_.labels.size(); }

  double TrainStep(std::span<const std::int64_t> samples) override {
    std::fill(gradient_.begin(), gradient_.end(), 0.0F);
    double loss = 0;
    for (const std::int64_t sample : samples) {
      const auto index = static_cast<std::size_t>(sample);
      network_.Forward(Pixels(training_, index));
      loss += network_.Backward(Label(training_, index), gradient_);
    }
    const auto count = static_cast<float>(samples.size());
    for (float& slope : gradient_) slope /= count;
    optimizer_.Step(gradient_, parameters_);
    network_.Load(parameters_);
    return loss / static_cast<double>(samples.size());
  }

  double Validate() override {
    std::size_t right = 0;
    for (std::size_t i = 0; i < validation_.labels.size(); ++i) {
      const auto scores = network_.Forward(Pixels(validation_, i));
      const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
      if (static_cast<std::size_t>(best) == Label(validation_, i)) ++right;
    }
    return static_cast<double>(right) / static_cast<double>(validation_.labels.size());
  }

 private:
  static std::span<const float> Pixels(const Images& images, std::size_t index) {
    constexpr std::size_t kPixels = kImageSide * kImageSide;
    return std::span(images.pixels).subspan(index * kPixels, kPixels);
  }
  static std::size_t Label(const Images& images, std::size_t index) {
    return static_cast<std::size_t>(images.labels[index]);
  }

  NativeCnn<float> network_;
  Images training_;
  Images validation_;
  std::vector<float> parameters_;
  std::vector<float> gradient_;
  Adam optimizer_;
};

}  // namespace

std::unique_ptr<Learner> MakeNativeCnn(const CnnShape& shape, const Recipe& recipe) {
  return std::make_unique<NativeLearner>(shape, recipe, Random(recipe.seed));
}

}  // namespace zeus::examples
