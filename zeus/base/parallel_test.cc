#include "zeus/base/parallel.h"

#include <gtest/gtest.h>

#include <vector>

namespace zeus {
namespace {

TEST(ParallelTest, EveryIndexIsTakenOnceByAnyNumberOfThreads) {
  for (const int threads : {-1, 1, 2, 8, 200}) {
    std::vector<int> calls(100);
    ForEachIndex(calls.size(), threads, [&](std::size_t index) { ++calls[index]; });
    EXPECT_EQ(calls, std::vector<int>(100, 1)) << threads;
  }
}

TEST(ParallelTest, NothingToDoIsDoneAtOnce) {
  ForEachIndex(0, 4, [](std::size_t) { FAIL(); });
}

TEST(ParallelTest, AMachineHasAtLeastOneThread) { EXPECT_GE(MachineThreads(), 1); }

}  // namespace
}  // namespace zeus
