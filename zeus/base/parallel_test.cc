#include "zeus/base/parallel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

namespace zeus {
namespace parallel_test {

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

TEST(ParallelTest, WhatACallThrowsIsThrownToTheCaller) {
  for (const int threads : {1, 8}) {
    std::atomic<int> calls{0};
    const auto task = [&](std::size_t) {
      ++calls;
      throw std::bad_alloc();
    };
    EXPECT_THROW(ForEachIndex(1000, threads, task), std::bad_alloc) << threads;
    EXPECT_LE(calls, threads) << "nothing is begun afterwards";
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Ends the process; sanitizers need more address space than there is here.
void WorkWithRoomForFewStacks() {
  const ::rlimit little{.rlim_cur = 256UL << 20, .rlim_max = 256UL << 20};
  ::setrlimit(RLIMIT_AS, &little);
  std::atomic<int> calls{0};
  ForEachIndex(1000, 1000, [&](std::size_t) { ++calls; });
  std::_Exit(calls == 1000 ? 0 : 1);
}

TEST(ParallelTest, FewerThreadsDoTheWorkWhereThereAreNoMore) {
  EXPECT_EXIT(WorkWithRoomForFewStacks(), ::testing::ExitedWithCode(0), "");
}
#endif

TEST(ParallelTest, AMachineHasAtLeastOneThread) { EXPECT_GE(MachineThreads(), 1); }

}  // namespace parallel_test
}  // namespace zeus
