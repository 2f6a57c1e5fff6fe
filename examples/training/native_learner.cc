#include "examples/training/native_learner.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "examples/training/dataset.h"

namespace zeus::examples {

template <class Number>
AffineMap<Number>::AffineMap(std::size_t inputs, std::size_t outputs)
    : inputs_(inputs),
      outputs_(outputs),
      weights_(inputs * outputs),
      packed_(blocks() * kBlock * inputs),
      biases_(blocks() * kBlock) {}

template <class Number>
void AffineMap<Number>::Load(std::span<const Number> parameters) {
  const auto biases = parameters.subspan(weights_.size(), outputs_);
  std::copy_n(parameters.begin(), weights_.size(), weights_.begin());
  std::copy(biases.begin(), biases.end(), biases_.begin());
  for (std::size_t output = 0; output < outputs_; ++output) {
    Number* const block = &packed_[output / kBlock * kBlock * inputs_];
    for (std::size_t input = 0; input < inputs_; ++input)
      block[input * kBlock + output % kBlock] = weights_[output * inputs_ + input];
  }
}

// The sums stay in registers over the whole loop. They are vectors of the compiler's, of the size
// that every x86-64 and ARM processor has, because GCC 12 keeps plain arrays in memory, which takes
// twice as long.
template <class Number>
template <std::size_t kRows>
auto AffineMap<Number>::Apply(const Number* inputs, std::size_t block) const -> Sums<kRows> {
  typedef Number Vector __attribute__((vector_size(kBlock * sizeof(Number) / 2)));
  const auto load = [](const Number* numbers) {
    Vector vector;
    std::memcpy(&vector, numbers, sizeof(vector));
    return vector;
  };
  const Number* const biases = &biases_[block * kBlock];
  Vector sums[kRows][2];
  for (Vector(&row)[2] : sums) {
    row[0] = load(biases);
    row[1] = load(biases + kBlock / 2);
  }
  const Number* weights = &packed_[block * kBlock * inputs_];
  for (std::size_t input = 0; input < inputs_; ++input, weights += kBlock) {
    const Vector low = load(weights);
    const Vector high = load(weights + kBlock / 2);
    for (std::size_t row = 0; row < kRows; ++row) {
      const Number value = inputs[row * inputs_ + input];
      sums[row][0] += value * low;
      sums[row][1] += value * high;
    }
  }
  Sums<kRows> result;
  std::memcpy(&result, sums, sizeof(result));
  return result;
}

template <class Number>
void AffineMap<Number>::Backward(const Slope& slope, const Number* inputs,
                                 Number* __restrict gradient,
                                 Number* __restrict input_gradient) const {
  const Number* const weights = &weights_[slope.output * inputs_];
  Number* const weight_gradient = gradient + slope.output * inputs_;
  for (std::size_t input = 0; input < inputs_; ++input)
    weight_gradient[input] += slope.value * inputs[input];
  gradient[weights_.size() + slope.output] += slope.value;
  if (input_gradient == nullptr) return;
  for (std::size_t input = 0; input < inputs_; ++input)
    input_gradient[input] += slope.value * weights[input];
}

template <class Number>
ConvolutionBlock<Number>::ConvolutionBlock(const Shape& shape)
    : cells_(shape.side / kPool),
      map_(kKernel * kKernel * shape.in, shape.out),
      patches_(cells_ * cells_ * kPixels * map_.inputs()),
      patch_gradient_(kPixels * map_.inputs()),
      winners_(cells_ * cells_ * shape.out) {}

template <class Number>
void ConvolutionBlock<Number>::Gather(const FeatureMap<Number>& input, std::size_t cell) {
  const std::size_t length = kKernel * input.channels;
  Number* patch = patches(cell);
  for (std::size_t pixel = 0; pixel < kPixels; ++pixel) {
    const std::size_t y = cell / cells_ * kPool + pixel / kPool;
    const std::size_t x = cell % cells_ * kPool + pixel % kPool;
    for (std::size_t row = 0; row < kKernel; ++row, patch += length)
      std::copy_n(input.At(y + row, x), length, patch);
  }
}

template <class Number>
void ConvolutionBlock<Number>::Scatter(std::size_t cell, FeatureMap<Number>& input_gradient) const {
  const std::size_t length = kKernel * input_gradient.channels;
  const Number* patch = patch_gradient_.data();
  for (std::size_t pixel = 0; pixel < kPixels; ++pixel) {
    const std::size_t y = cell / cells_ * kPool + pixel / kPool;
    const std::size_t x = cell % cells_ * kPool + pixel % kPool;
    for (std::size_t row = 0; row < kKernel; ++row, patch += length) {
      Number* const target = input_gradient.At(y + row, x);
      for (std::size_t i = 0; i < length; ++i) target[i] += patch[i];
    }
  }
}

template <class Number>
void ConvolutionBlock<Number>::Pool(const Sums& sums, std::size_t cell, std::size_t block,
                                    Number* output) {
  constexpr std::size_t kBlock = AffineMap<Number>::kBlock;
  const std::size_t first = block * kBlock;
  const std::size_t last = std::min(first + kBlock, map_.outputs());
  for (std::size_t channel = first; channel < last; ++channel) {
    std::uint8_t winner = 0;
    for (std::uint8_t pixel = 1; pixel < kPixels; ++pixel)
      if (sums.rows[pixel][channel - first] > sums.rows[winner][channel - first]) winner = pixel;
    winners_[cell * map_.outputs() + channel] = winner;
    output[channel] = std::max(sums.rows[winner][channel - first], Number{0});
  }
}

template <class Number>
void ConvolutionBlock<Number>::Forward(const FeatureMap<Number>& input,
                                       FeatureMap<Number>& output) {
  for (std::size_t cell = 0; cell < cells_ * cells_; ++cell) {
    Gather(input, cell);
    Number* const pixel = output.At(output.border + cell / cells_, output.border + cell % cells_);
    for (std::size_t block = 0; block < map_.blocks(); ++block)
      Pool(map_.template Apply<kPixels>(patches(cell), block), cell, block, pixel);
  }
}

// An output depends only on the pixel that pooling picked, and on none where ReLU cut it off.
template <class Number>
void ConvolutionBlock<Number>::Backward(const FeatureMap<Number>& output,
                                        const FeatureMap<Number>& output_gradient, Number* gradient,
                                        FeatureMap<Number>* input_gradient) {
  for (std::size_t cell = 0; cell < cells_ * cells_; ++cell) {
    const std::size_t y = output.border + cell / cells_;
    const std::size_t x = output.border + cell % cells_;
    std::fill(patch_gradient_.begin(), patch_gradient_.end(), Number{0});
    for (std::size_t channel = 0; channel < map_.outputs(); ++channel) {
      if (output.At(y, x)[channel] <= 0) continue;
      const std::size_t patch = winners_[cell * map_.outputs() + channel] * map_.inputs();
      map_.Backward({.output = channel, .value = output_gradient.At(y, x)[channel]},
                    patches(cell) + patch, gradient,
                    input_gradient == nullptr ? nullptr : &patch_gradient_[patch]);
    }
    if (input_gradient != nullptr) Scatter(cell, *input_gradient);
  }
}

template <class Number>
NativeCnn<Number>::NativeCnn(const CnnShape& shape)
    : image_(static_cast<std::size_t>(shape.side), 1, 1),
      first_({.side = image_.side, .in = 1, .out = static_cast<std::size_t>(shape.channels)}),
      hidden_(image_.side / 2, static_cast<std::size_t>(shape.channels), 1),
      second_({.side = hidden_.side, .in = hidden_.channels, .out = 2 * hidden_.channels}),
      features_(hidden_.side / 2, 2 * hidden_.channels, 0),
      output_(features_.values.size(), static_cast<std::size_t>(shape.classes)),
      scores_(output_.outputs()),
      score_gradient_(output_.outputs()),
      features_gradient_(features_),
      hidden_gradient_(hidden_) {}

template <class Number>
std::size_t NativeCnn<Number>::parameter_count() const {
  return first_.parameter_count() + second_.parameter_count() + output_.parameter_count();
}

template <class Number>
std::vector<Number> NativeCnn<Number>::DrawParameters(Random random) const {
  std::vector<Number> parameters;
  const auto draw = [&](std::size_t count, std::size_t fan_in) {
    const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
    for (std::size_t i = 0; i < count; ++i)
      parameters.push_back(static_cast<Number>(random.Uniform(-bound, bound)));
  };
  draw(first_.parameter_count(), first_.fan_in());
  draw(second_.parameter_count(), second_.fan_in());
  draw(output_.parameter_count(), output_.inputs());
  return parameters;
}

template <class Number>
void NativeCnn<Number>::Load(std::span<const Number> parameters) {
  const std::size_t second = first_.parameter_count();
  const std::size_t output = second + second_.parameter_count();
  first_.Load(parameters);
  second_.Load(parameters.subspan(second));
  output_.Load(parameters.subspan(output));
}

template <class Number>
std::span<const Number> NativeCnn<Number>::Forward(std::span<const float> pixels) {
  for (std::size_t y = 0; y < image_.side; ++y)
    std::copy_n(&pixels[y * image_.side], image_.side, image_.At(y + 1, 1));
  first_.Forward(image_, hidden_);
  second_.Forward(hidden_, features_);
  for (std::size_t block = 0; block < output_.blocks(); ++block) {
    const auto sums = output_.template Apply<1>(features_.values.data(), block);
    const std::size_t begin = block * output_.kBlock;
    std::copy_n(sums.rows[0], std::min(output_.kBlock, scores_.size() - begin), &scores_[begin]);
  }
  return scores_;
}

// The gradient of softmax with cross-entropy is the probability of each class, less 1 for the
// label.
template <class Number>
double NativeCnn<Number>::ScoreGradient(std::size_t label) {
  const Number largest = *std::max_element(scores_.begin(), scores_.end());
  Number sum = 0;
  for (std::size_t i = 0; i < scores_.size(); ++i)
    sum += score_gradient_[i] = std::exp(scores_[i] - largest);
  for (Number& slope : score_gradient_) slope /= sum;
  score_gradient_[label] -= 1;
  return std::log(sum) - (scores_[label] - largest);
}

template <class Number>
double NativeCnn<Number>::Backward(std::size_t label, std::span<Number> gradient) {
  Number* const second = gradient.data() + first_.parameter_count();
  Number* const output = second + second_.parameter_count();
  const double loss = ScoreGradient(label);
  std::fill(features_gradient_.values.begin(), features_gradient_.values.end(), Number{0});
  for (std::size_t i = 0; i < scores_.size(); ++i)
    output_.Backward({.output = i, .value = score_gradient_[i]}, features_.values.data(), output,
                     features_gradient_.values.data());
  std::fill(hidden_gradient_.values.begin(), hidden_gradient_.values.end(), Number{0});
  second_.Backward(features_, features_gradient_, second, &hidden_gradient_);
  first_.Backward(hidden_, hidden_gradient_, gradient.data(), nullptr);
  return loss;
}

template class NativeCnn<float>;
template class NativeCnn<double>;

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
