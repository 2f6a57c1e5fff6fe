#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "examples/training/learner.h"
#include "examples/training/network.h"
#include "zeus/base/random.h"

// The network of a CnnShape with its forward and backward pass in plain C++, for the demo, which
// must run where no library for neural networks is installed.
//
// A convolution is the product of two matrices: the patches of the image that lie under the kernel,
// and the weights. Images pass through the whole network one at a time, so that everything the
// backward pass needs of an image is still in the processor's cache. Every sum is added up in a
// fixed order, so that the same parameters and images give the same bits.
//
// Learners use float. Tests use double, since finite differences need its precision.

namespace zeus::examples {

// Weights and biases that map a row of `inputs` numbers to `outputs` numbers. The convolutions and
// the linear layer consist of it. Not thread-safe.
template <class Number>
class AffineMap {
 public:
  // Outputs are computed in blocks of this size: two vectors of 16 bytes.
  static constexpr std::size_t kBlock = 32 / sizeof(Number);

  AffineMap(std::size_t inputs, std::size_t outputs);

  std::size_t inputs() const { return inputs_; }
  std::size_t outputs() const { return outputs_; }
  std::size_t blocks() const { return (outputs_ + kBlock - 1) / kBlock; }

  // Parameters are ordered as the weights of the first output, of the second, ..., then all biases.
  std::size_t parameter_count() const { return (inputs_ + 1) * outputs_; }
  void Load(std::span<const Number> parameters);

  // The outputs of one block for several rows of inputs.
  template <std::size_t kRows>
  struct Sums {
    Number rows[kRows][kBlock];
  };
  // `inputs` holds kRows rows one after the other. Outputs that fill up the last block are 0.
  template <std::size_t kRows>
  Sums<kRows> Apply(const Number* inputs, std::size_t block) const;

  // The derivative of the loss by one output.
  struct Slope {
    std::size_t output;
    Number value;
  };
  // Adds the derivatives by the parameters to `gradient`, and those by the row of inputs to
  // `input_gradient` unless that is null.
  void Backward(const Slope& slope, const Number* inputs, Number* gradient,
                Number* input_gradient) const;

 private:
  std::size_t inputs_;
  std::size_t outputs_;
  std::vector<Number> weights_;  // [output][input], for the backward pass.
  std::vector<Number> packed_;   // [block][input][output of the block], for the forward pass.
  std::vector<Number> biases_;   // Padded to whole blocks.
};

// An image or the output of a layer: [row][column][channel], with a border of zeros around it.
template <class Number>
struct FeatureMap {
  FeatureMap(std::size_t side_length, std::size_t channel_count, std::size_t border_width)
      : side(side_length),
        channels(channel_count),
        border(border_width),
        values((side + 2 * border) * row()) {}

  std::size_t row() const { return (side + 2 * border) * channels; }
  // Coordinates include the border.
  Number* At(std::size_t y, std::size_t x) { return &values[y * row() + x * channels]; }
  const Number* At(std::size_t y, std::size_t x) const { return &values[y * row() + x * channels]; }

  std::size_t side;
  std::size_t channels;
  std::size_t border;
  std::vector<Number> values;
};

// A 3x3 convolution with padding 1, ReLU, and 2x2 max-pooling, for one image at a time. Not
// thread-safe.
template <class Number>
class ConvolutionBlock {
 public:
  struct Shape {
    std::size_t side;
    std::size_t in;
    std::size_t out;
  };
  explicit ConvolutionBlock(const Shape& shape);

  std::size_t parameter_count() const { return map_.parameter_count(); }
  std::size_t fan_in() const { return map_.inputs(); }
  void Load(std::span<const Number> parameters) { map_.Load(parameters); }

  // `input` has a border of 1.
  void Forward(const FeatureMap<Number>& input, FeatureMap<Number>& output);

  // Must follow the Forward() that wrote `output`. Adds the derivatives by the parameters to
  // `gradient`, and those by the input to `input_gradient` unless that is null.
  void Backward(const FeatureMap<Number>& output, const FeatureMap<Number>& output_gradient,
                Number* gradient, FeatureMap<Number>* input_gradient);

 private:
  static constexpr std::size_t kKernel = 3;
  static constexpr std::size_t kPool = 2;
  // A cell is the square of pixels from which pooling picks one.
  static constexpr std::size_t kPixels = kPool * kPool;

  using Sums = typename AffineMap<Number>::template Sums<kPixels>;

  Number* patches(std::size_t cell) { return &patches_[cell * kPixels * map_.inputs()]; }
  void Gather(const FeatureMap<Number>& input, std::size_t cell);
  void Scatter(std::size_t cell, FeatureMap<Number>& input_gradient) const;
  void Pool(const Sums& sums, std::size_t cell, std::size_t block, Number* output);

  std::size_t cells_;  // Cells along one side of the image.
  AffineMap<Number> map_;
  std::vector<Number> patches_;         // [cell][pixel][input under the kernel].
  std::vector<Number> patch_gradient_;  // [pixel][input under the kernel], of one cell.
  std::vector<std::uint8_t> winners_;   // [cell][channel]: the pixel that pooling picked.
};

// Two convolution blocks and a linear layer. The caller owns the parameters and loads them after
// every change. Not thread-safe.
template <class Number>
class NativeCnn {
 public:
  explicit NativeCnn(const CnnShape& shape);

  // Parameters are ordered as those of the first convolution, the second, and the linear layer.
  std::size_t parameter_count() const;
  // Uniform in ±1/sqrt(fan-in), which is the default of torch.
  std::vector<Number> DrawParameters(Random random) const;
  void Load(std::span<const Number> parameters);

  // Returns the score of every class, valid until the next call. Pixels are ordered row by row.
  std::span<const Number> Forward(std::span<const float> pixels);

  // Returns the cross-entropy loss of the last scores, and adds its gradient to `gradient`.
  double Backward(std::size_t label, std::span<Number> gradient);

 private:
  double ScoreGradient(std::size_t label);

  FeatureMap<Number> image_;
  ConvolutionBlock<Number> first_;
  FeatureMap<Number> hidden_;
  ConvolutionBlock<Number> second_;
  FeatureMap<Number> features_;
  AffineMap<Number> output_;
  std::vector<Number> scores_;
  std::vector<Number> score_gradient_;
  FeatureMap<Number> features_gradient_;
  FeatureMap<Number> hidden_gradient_;
};

extern template class NativeCnn<float>;
extern template class NativeCnn<double>;

// Classifies digits in noisy images (dataset.h) with the network of native_learner.h.
std::unique_ptr<Learner> MakeNativeCnn(const CnnShape& shape, const Recipe& recipe);

}  // namespace zeus::examples
