#include "examples/training/network.h"

#include <gtest/gtest.h>

namespace zeus::examples {
namespace network_test {

constexpr CnnShape kCnn{.side = 16, .channels = 8, .classes = 10};
constexpr TransformerShape kTransformer{.length = 12,
                                        .tokens = 9,
                                        .width = 32,
                                        .heads = 4,
                                        .feed_forward = 64,
                                        .layers = 2,
                                        .classes = 8};

TEST(NetworkTest, OperationsOfACnnAreThoseOfItsLayers) {
  const double first = 2 * 16 * 16 * 9 * 1 * 8 + 16 * 16 * 8;  // Activation: one per output.
  const double second = 2 * 8 * 8 * 9 * 8 * 16 + 8 * 8 * 16;
  const double linear = 2 * (4 * 4 * 16) * 10;
  EXPECT_DOUBLE_EQ(ForwardWork(kCnn, 1).operations, first + second + linear);
}

TEST(NetworkTest, OperationsOfATransformerAreMostlyItsProducts) {
  const double projections = 2.0 * 12 * 32 * 4 * 32;
  const double attention = 2 * 2.0 * 12 * 12 * 32;
  const double feed_forward = 2 * 2.0 * 12 * 32 * 64;
  const double products = 2 * (projections + attention + feed_forward);
  const double all = ForwardWork(kTransformer, 1).operations;
  EXPECT_GT(all, products);
  EXPECT_LT(all, 1.05 * products);
}

TEST(NetworkTest, WeightsAreReadOncePerStepHoweverLargeTheBatch) {
  for (const double samples : {1.0, 64.0}) {
    EXPECT_DOUBLE_EQ(ForwardWork(kCnn, samples).operations,
                     samples * ForwardWork(kCnn, 1).operations);
  }
  const double one = ForwardWork(kCnn, 1).bytes;
  const double two = ForwardWork(kCnn, 2).bytes;
  const double weights = 2 * (9 * 8 + 9 * 8 * 16 + 4 * 4 * 16 * 10);
  EXPECT_DOUBLE_EQ(2 * one - two, weights);
}

TEST(NetworkTest, AWiderNetworkHasMoreOperationsPerByte) {
  const auto intensity = [](const sim::StepWork& work) { return work.operations / work.bytes; };
  const sim::StepWork small = ForwardWork(kCnn, 64);
  const sim::StepWork wide = ForwardWork(Magnify(kCnn, {.width = 64, .length = 1}), 64);
  EXPECT_GT(intensity(wide), 10 * intensity(small));
  const sim::StepWork deep = ForwardWork(Magnify(kTransformer, {.width = 64, .length = 4}), 64);
  EXPECT_GT(intensity(deep), 10 * intensity(ForwardWork(kTransformer, 64)));
}

}  // namespace network_test
}  // namespace zeus::examples
