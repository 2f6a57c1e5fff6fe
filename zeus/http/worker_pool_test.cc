#include "zeus/http/worker_pool.h"

#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace zeus::http {
namespace worker_pool_test {

TEST(WorkerPoolTest, BeginsWithOneThreadAndGrowsWhileAllAreBusy) {
  WorkerPool pool(3);
  EXPECT_EQ(pool.threads(), 1U);
  std::promise<void> over;
  const std::shared_future<void> end = over.get_future().share();
  std::vector<std::future<void>> begun;
  for (int i = 0; i < 3; ++i) {
    auto task_begins = std::make_shared<std::promise<void>>();
    begun.push_back(task_begins->get_future());
    pool.Post([task_begins, end] {
      task_begins->set_value();
      end.wait();
    });
  }
  for (auto& task : begun) task.wait();  // All three run at the same time.
  EXPECT_EQ(pool.threads(), 3U);
  std::promise<void> fourth;
  pool.Post([&] { fourth.set_value(); });
  EXPECT_EQ(pool.threads(), 3U);  // The fourth waits for its turn.
  over.set_value();
  fourth.get_future().wait();
}

}  // namespace worker_pool_test
}  // namespace zeus::http
