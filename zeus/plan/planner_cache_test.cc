#include "zeus/plan/planner_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "zeus/plan/testing/plan_samples.h"

namespace zeus {
namespace planner_cache_test {

class PlannerCacheTest : public ::testing::Test {
 protected:
  static PlanRecord Plan(const std::string& id) { return {.id = id, .incarnation = 1}; }

  // Solves a pipeline of 16 computations.
  PlannerCache::Solve Solving() {
    return [this](const pipeline::SolveOptions& options) {
      ++solves_;
      return SolvedPipeline::Solve(zeus::testing::APlanSpec("a"), options);
    };
  }
  // Solves when the gate is open.
  PlannerCache::Solve SolvingLater() {
    return [this](const pipeline::SolveOptions& options) {
      ++solves_;
      std::unique_lock lock(mutex_);
      opened_.wait(lock, [this] { return open_; });
      return SolvedPipeline::Solve(zeus::testing::APlanSpec("a"), options);
    };
  }
  void Open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    opened_.notify_all();
  }
  void AwaitSolves(int count) const {
    while (solves_ < count) std::this_thread::yield();
  }

  SystemClock clock_;
  std::atomic<int> solves_ = 0;
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;  // Guarded by mutex_.
};

TEST_F(PlannerCacheTest, WhatWasAskedForLastIsKept) {
  PlannerCache cache(clock_, {.most_computations = 40});
  for (const char* id : {"a", "b", "a", "c"}) ASSERT_TRUE(cache.Get(Plan(id), Solving()).ok());
  EXPECT_EQ(solves_, 3);
  EXPECT_EQ(cache.figures().pipelines, 2);
  EXPECT_EQ(cache.figures().computations, 32);
  ASSERT_TRUE(cache.Get(Plan("a"), Solving()).ok());
  EXPECT_EQ(solves_, 3);
  ASSERT_TRUE(cache.Get(Plan("b"), Solving()).ok());
  EXPECT_EQ(solves_, 4);
}

TEST_F(PlannerCacheTest, OneThatIsTooLargeIsKeptAlone) {
  PlannerCache cache(clock_, {.most_computations = 1});
  ASSERT_TRUE(cache.Get(Plan("a"), Solving()).ok());
  ASSERT_TRUE(cache.Get(Plan("a"), Solving()).ok());
  EXPECT_EQ(solves_, 1);
  EXPECT_EQ(cache.figures().pipelines, 1);
}

TEST_F(PlannerCacheTest, AFailureIsToldAndNotKept) {
  PlannerCache cache(clock_, {});
  const auto fail = [](const pipeline::SolveOptions&) -> Result<PlannerCache::Solved> {
    throw std::runtime_error("out of luck");
  };
  const auto failed = cache.Get(Plan("a"), fail);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "solving failed: out of luck");
  EXPECT_TRUE(cache.Get(Plan("a"), Solving()).ok());
  EXPECT_EQ(cache.figures().failures, 1);
  EXPECT_EQ(cache.figures().solves, 1);
}

TEST_F(PlannerCacheTest, APlanMadeAnewIsSolvedAnew) {
  PlannerCache cache(clock_, {});
  ASSERT_TRUE(cache.Get(Plan("a"), Solving()).ok());
  ASSERT_TRUE(cache.Get({.id = "a", .incarnation = 2}, Solving()).ok());
  EXPECT_EQ(solves_, 2);
  cache.Forget("a");
  EXPECT_EQ(cache.figures().pipelines, 0);
  EXPECT_EQ(cache.figures().computations, 0);
}

TEST_F(PlannerCacheTest, WhoAsksForTheSameWaitsForTheOneSolve) {
  PlannerCache cache(clock_, {});
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] { EXPECT_TRUE(cache.Get(Plan("a"), SolvingLater()).ok()); });
  AwaitSolves(1);
  Open();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(solves_, 1);
}

TEST_F(PlannerCacheTest, TooManyAtOnceAreToldToComeAgain) {
  PlannerCache cache(clock_, {.solves_at_once = 1, .most_waiting = 0});
  std::thread first([&] { EXPECT_TRUE(cache.Get(Plan("a"), SolvingLater()).ok()); });
  AwaitSolves(1);
  const auto second = cache.Get(Plan("b"), Solving());
  Open();
  first.join();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(cache.Get(Plan("b"), Solving()).ok());
}

TEST_F(PlannerCacheTest, WhatIsForgottenWhileItIsSolvedIsNotKept) {
  PlannerCache cache(clock_, {});
  std::thread first([&] { EXPECT_TRUE(cache.Get(Plan("a"), SolvingLater()).ok()); });
  AwaitSolves(1);
  cache.Forget("a");
  Open();
  first.join();
  EXPECT_EQ(cache.figures().pipelines, 0);
}

}  // namespace planner_cache_test
}  // namespace zeus
