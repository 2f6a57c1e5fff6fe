#include "zeus/base/detached_call.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <condition_variable>
#include <memory>

namespace zeus {
namespace detached_call_test {

constexpr Seconds kGuard{60};  // Reached only when the test fails.

// Keeps a call from returning until it is opened.
class Gate {
 public:
  void Open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }
  void Pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

TEST(DetachedCallTest, GivesTheValueOnce) {
  DetachedCall<int> call([] { return 7; });
  EXPECT_EQ(call.TakeWithin(kGuard), 7);
  EXPECT_EQ(call.TakeWithin(kGuard), std::nullopt);
}

TEST(DetachedCallTest, ACallThatDoesNotReturnIsNotWaitedFor) {
  const auto gate = std::make_shared<Gate>();
  DetachedCall<int> call([gate] {
    gate->Pass();
    return 7;
  });
  EXPECT_EQ(call.TakeWithin(Seconds(0)), std::nullopt);
  gate->Open();
  EXPECT_EQ(call.TakeWithin(kGuard), 7);
}

TEST(DetachedCallTest, TheDescriptorIsReadableOnceTheCallHasReturned) {
  const auto gate = std::make_shared<Gate>();
  DetachedCall<int> call([gate] {
    gate->Pass();
    return 7;
  });
  ::pollfd event{.fd = call.descriptor(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&event, 1, 0), 0);
  gate->Open();
  EXPECT_EQ(::poll(&event, 1, static_cast<int>(kGuard.count()) * 1000), 1);
  EXPECT_TRUE(call.FinishedWithin(Seconds(0)));
}

TEST(DetachedCallTest, AbandonedCallsAreCountedUntilTheyReturn) {
  ASSERT_EQ(AbandonedCalls(), 0);
  const auto gate = std::make_shared<Gate>();
  {
    const DetachedCall<int> call([gate] {
      gate->Pass();
      return 7;
    });
  }
  EXPECT_EQ(AbandonedCalls(), 1);
  gate->Open();
  while (AbandonedCalls() != 0) std::this_thread::yield();
}

}  // namespace detached_call_test
}  // namespace zeus
