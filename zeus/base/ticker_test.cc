#include "zeus/base/ticker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace zeus {
namespace {

using namespace std::chrono_literals;

TEST(TickerTest, CallsAgainWhenTheStepAskedForIt) {
  SystemClock clock;
  std::atomic<int> calls = 0;
  std::promise<void> third;
  Ticker ticker("test", [&] {
    if (++calls == 3) third.set_value();
    return calls < 3 ? clock.Now() : clock.Now() + 1h;
  });
  third.get_future().wait();
  EXPECT_EQ(calls, 3);
}

TEST(TickerTest, DestructionInterruptsTheSleep) {
  SystemClock clock;
  std::promise<void> first;
  {
    Ticker ticker("test", [&] {
      first.set_value();
      return clock.Now() + 1h;
    });
    first.get_future().wait();
  }  // Would take an hour.
}

}  // namespace
}  // namespace zeus
