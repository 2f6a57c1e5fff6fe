#include "examples/training/native_learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "examples/training/dataset.h"
#include "zeus/base/random.h"

namespace zeus::examples {
namespace native_learner_test {

constexpr CnnShape kShape{.side = kImageSide, .channels = 8, .classes = kDigits};

// Channels and classes are no multiples of the blocks in which a layer computes its outputs.
constexpr CnnShape kOddShape{.side = 8, .channels = 3, .classes = 5};

using Batch = std::vector<std::int64_t>;

std::unique_ptr<Learner> MakeLearner(std::uint64_t seed, std::size_t samples = 300) {
  return MakeNativeCnn(kShape, {.seed = seed,
                                .training_samples = samples,
                                .validation_samples = 200,
                                .learning_rate = 3e-3});
}

// Losses of the steps of one epoch in the order of the samples; the last batch may be smaller.
std::vector<double> TrainEpoch(Learner& learner, std::size_t batch_size) {
  Batch order(learner.training_samples());
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> losses;
  for (std::size_t begin = 0; begin < order.size(); begin += batch_size)
    losses.push_back(learner.TrainStep(
        std::span(order).subspan(begin, std::min(batch_size, order.size() - begin))));
  return losses;
}

double Mean(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

// A network of double precision, an image for it, and the right answer.
class GradientTest : public testing::Test {
 protected:
  GradientTest() {
    Random random(5);
    for (float& pixel : image_) pixel = static_cast<float>(random.Normal());
  }

  double Loss(std::span<const double> parameters) {
    network_.Load(parameters);
    network_.Forward(image_);
    std::vector<double> unused(parameters.size());
    return network_.Backward(kLabel, unused);
  }

  std::vector<double> Gradient() {
    std::vector<double> gradient(parameters_.size());
    network_.Load(parameters_);
    network_.Forward(image_);
    network_.Backward(kLabel, gradient);
    return gradient;
  }

  // The change of the loss with one parameter, from two losses close by.
  double FiniteDifference(std::size_t parameter) {
    constexpr double kStep = 1e-6;
    std::vector<double> changed = parameters_;
    changed[parameter] = parameters_[parameter] + kStep;
    const double above = Loss(changed);
    changed[parameter] = parameters_[parameter] - kStep;
    return (above - Loss(changed)) / (2 * kStep);
  }

  // The layers' parameters follow each other, each with its weights before its biases.
  void ExpectAgreement(std::size_t begin, std::size_t count) {
    const std::vector<double> gradient = Gradient();
    double largest = 0;
    for (std::size_t i = begin; i < begin + count; ++i) {
      EXPECT_NEAR(gradient[i], FiniteDifference(i), 1e-7) << "parameter " << i;
      largest = std::max(largest, std::abs(gradient[i]));
    }
    EXPECT_GT(largest, 1e-3);  // The loss depends on this layer at all.
  }

  static constexpr std::size_t kLabel = 3;
  static constexpr std::size_t kFirst = 3 * (9 + 1);
  static constexpr std::size_t kSecond = 6 * (9 * 3 + 1);
  static constexpr std::size_t kOutput = 5 * (2 * 2 * 6 + 1);

  NativeCnn<double> network_{kOddShape};
  std::vector<double> parameters_ = network_.DrawParameters(Random(4));
  std::vector<float> image_ = std::vector<float>(kOddShape.side * kOddShape.side);
};

TEST_F(GradientTest, ThereIsAParameterForEveryWeightAndBias) {
  EXPECT_EQ(network_.parameter_count(), kFirst + kSecond + kOutput);
  EXPECT_EQ(parameters_.size(), network_.parameter_count());
}

TEST_F(GradientTest, OfTheLinearLayerIsTheFiniteDifference) {
  ExpectAgreement(kFirst + kSecond, kOutput);
}

TEST_F(GradientTest, OfAConvolutionBelowReluAndPoolingIsTheFiniteDifference) {
  ExpectAgreement(kFirst, kSecond);
}

TEST_F(GradientTest, OfAConvolutionBelowAnotherConvolutionIsTheFiniteDifference) {
  ExpectAgreement(0, kFirst);
}

TEST_F(GradientTest, IsAddedToThatOfOtherImages) {
  const std::vector<double> once = Gradient();
  std::vector<double> twice = once;
  network_.Forward(image_);
  network_.Backward(kLabel, twice);
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_NEAR(twice[i], 2 * once[i], 1e-12);
}

TEST(NativeCnnTest, ScoresAreThoseOfAConvolutionReluPoolingAndLinearLayerDoneByHand) {
  // One channel on an image of 4x4 becomes 2x2 and then one pixel of two channels.
  NativeCnn<double> network({.side = 4, .channels = 1, .classes = 2});
  std::vector<double> parameters(network.parameter_count());
  parameters[5] = 1;              // First convolution: the pixel on the right, ...
  parameters[9] = -1;             // ... less 1.
  parameters[10 + 4] = 2;         // Second: channel 0 is twice the pixel itself, ...
  parameters[10 + 18] = 0.5;      // ... plus 0.5;
  parameters[10 + 9 + 4] = -1;    // channel 1 is never positive.
  parameters[30] = 10;            // Linear: class 0 is ten times channel 0;
  parameters[30 + 3] = 10;        // class 1 would be ten times channel 1, ...
  parameters[30 + 4 + 1] = 0.25;  // ... plus 0.25.
  network.Load(parameters);
  const std::vector<float> image{9, 0, 0, 0,  //
                                 0, 3, 0, 0,  //
                                 0, 0, 0, 7,  //
                                 8, 0, 0, 0};
  const std::span<const double> scores = network.Forward(image);
  ASSERT_EQ(scores.size(), 2U);
  // The 7 moves left to a pixel that exists, the 9 and the 8 move out of the image.
  EXPECT_DOUBLE_EQ(scores[0], 10 * (2 * (7 - 1) + 0.5));
  EXPECT_DOUBLE_EQ(scores[1], 0.25);
}

TEST(NativeCnnTest, ParametersAreDrawnWithinTheBoundsOfTorch) {
  const NativeCnn<float> network(kShape);
  const std::vector<float> parameters = network.DrawParameters(Random(1));
  const auto expect_bound = [&](std::size_t begin, std::size_t count, double inputs) {
    double largest = 0;
    for (const float parameter : std::span(parameters).subspan(begin, count))
      largest = std::max(largest, static_cast<double>(std::abs(parameter)));
    EXPECT_LE(largest, 1 / std::sqrt(inputs) + 1e-6);
    EXPECT_GT(largest, 0.95 / std::sqrt(inputs));
  };
  expect_bound(0, 80, 9);
  expect_bound(80, 1168, 72);
  expect_bound(80 + 1168, 2570, 256);
}

TEST(NativeLearnerTest, AnUntrainedNetworkGuesses) {
  const auto learner = MakeLearner(1);
  EXPECT_EQ(learner->training_samples(), 300U);
  EXPECT_EQ(learner->validation_samples(), 200U);
  EXPECT_LT(learner->Validate(), 0.3);
  EXPECT_NEAR(learner->TrainStep(Batch{0, 1, 2, 3}), std::log(kDigits), 0.3);
}

TEST(NativeLearnerTest, TheSameSeedGivesTheSameBits) {
  const auto first = MakeLearner(1);
  const auto second = MakeLearner(1);
  const auto other = MakeLearner(2);
  const std::vector<double> losses = TrainEpoch(*first, 32);
  EXPECT_EQ(losses, TrainEpoch(*second, 32));
  EXPECT_EQ(first->Validate(), second->Validate());
  EXPECT_NE(losses, TrainEpoch(*other, 32));
}

TEST(NativeLearnerTest, ValidationChangesNothing) {
  const auto first = MakeLearner(1);
  const auto second = MakeLearner(1);
  TrainEpoch(*first, 64);
  TrainEpoch(*second, 64);
  EXPECT_EQ(first->Validate(), first->Validate());
  EXPECT_EQ(TrainEpoch(*first, 64), TrainEpoch(*second, 64));
}

TEST(NativeLearnerTest, ItLearns) {
  const auto learner = MakeLearner(3, 1000);
  const double before = Mean(TrainEpoch(*learner, 16));
  double loss = before;
  for (int epochs = 1; learner->Validate() < 0.9 && epochs < 20; ++epochs)
    loss = Mean(TrainEpoch(*learner, 16));
  EXPECT_GE(learner->Validate(), 0.9);
  EXPECT_LT(loss, before / 2);
}

TEST(NativeLearnerTest, AnySizeOfBatchWillDo) {
  for (const std::size_t batch_size : {1U, 7U, 64U, 299U, 300U, 1000U}) {
    const auto learner = MakeLearner(1);
    const std::vector<double> losses = TrainEpoch(*learner, batch_size);
    EXPECT_EQ(losses.size(), (300 + batch_size - 1) / batch_size);
    for (const double loss : losses) EXPECT_TRUE(std::isfinite(loss)) << batch_size;
  }
}

TEST(NativeLearnerTest, TheLossOfABatchIsTheMeanOfItsSamples) {
  const double both = MakeLearner(1)->TrainStep(Batch{4, 9});
  const double one = MakeLearner(1)->TrainStep(Batch{4});
  const double other = MakeLearner(1)->TrainStep(Batch{9});
  EXPECT_DOUBLE_EQ(both, (one + other) / 2);
}

}  // namespace native_learner_test
}  // namespace zeus::examples
