#include "zeus/base/ticker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace zeus {
namespace ticker_test {

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

TEST(TickerTest, WakingCallsTheStepWithoutWaitingForItsTime) {
  std::promise<void> first;
  std::promise<void> second;
  int calls = 0;  // Used by the ticker's thread alone.
  Ticker ticker("test", [&] {
    if (++calls == 1) first.set_value();
    if (calls == 2) second.set_value();
    return Ticker::kWhenWoken;
  });
  first.get_future().wait();
  ticker.Wake();
  second.get_future().wait();
}

TEST(TickerTest, AWakeUpDuringAStepIsNotLost) {
  std::promise<void> in_step;
  std::promise<void> woken;
  std::promise<void> second;
  int calls = 0;
  Ticker ticker("test", [&] {
    if (++calls == 1) {
      in_step.set_value();
      woken.get_future().wait();
    }
    if (calls == 2) second.set_value();
    return Ticker::kWhenWoken;
  });
  in_step.get_future().wait();
  ticker.Wake();
  woken.set_value();
  second.get_future().wait();
}

}  // namespace ticker_test
}  // namespace zeus
