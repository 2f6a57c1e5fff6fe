#include "zeus/base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <type_traits>

namespace zeus {
namespace random_test {

static_assert(std::is_trivially_copyable_v<Random>);

TEST(RandomTest, SameSeedSameNumbers) {
  Random a(42);
  Random b(42);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.NextBits(), b.NextBits());
}

TEST(RandomTest, NumbersAreTheSameOnEveryPlatform) {
  // Golden values of xoshiro256++ seeded with SplitMix64(42): a change breaks stored seeds.
  Random random(42);
  EXPECT_EQ(random.NextBits(), 15021278609987233951ULL);
  EXPECT_EQ(random.NextBits(), 5881210131331364753ULL);
}

TEST(RandomTest, ForkedStreamsAreIndependentOfLaterDraws) {
  Random parent(7);
  Random first = parent.Fork("jitter");
  Random second = parent.Fork("jitter");
  Random other = parent.Fork("gain");
  EXPECT_EQ(first.NextBits(), second.NextBits());
  EXPECT_NE(first.NextBits(), other.NextBits());
}

TEST(RandomTest, NormalHasMeanZeroAndVarianceOne) {
  Random random(1);
  constexpr int kDraws = 100'000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.Normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1.0, 0.02);
}

TEST(RandomTest, BelowIsUniform) {
  Random random(3);
  std::array<int, 6> counts{};
  for (int i = 0; i < 60'000; ++i) ++counts.at(random.Below(counts.size()));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
}

}  // namespace random_test
}  // namespace zeus
