#include "zeus/base/fork.h"

#include <gtest/gtest.h>

#include "zeus/base/testing/child_process.h"

namespace zeus {
namespace fork_test {

using zeus::testing::HoldsInAChild;

TEST(ForkTest, EveryGenerationOfChildrenKnowsThatItIsOne) {
  WatchForks();
  WatchForks();
  const unsigned here = ForkGeneration();

  EXPECT_TRUE(HoldsInAChild([&] {
    return ForkGeneration() == here + 1 &&
           HoldsInAChild([&] { return ForkGeneration() == here + 2; });
  }));
  EXPECT_EQ(ForkGeneration(), here);
}

}  // namespace fork_test
}  // namespace zeus
