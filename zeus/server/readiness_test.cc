#include "zeus/server/readiness.h"

#include <gtest/gtest.h>

#include <future>

namespace zeus::server {
namespace readiness_test {

using namespace std::chrono_literals;

TEST(ReadinessTest, ChecksTheDatabaseOnlyNowAndThen) {
  VirtualClock clock;
  int checks = 0;
  Readiness readiness(
      [&]() -> Status {
        ++checks;
        return Ok();
      },
      clock);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(readiness.Check().ok());
  EXPECT_EQ(checks, 1);
  clock.Advance(Readiness::kValidity);
  EXPECT_TRUE(readiness.Check().ok());
  EXPECT_EQ(checks, 2);
}

TEST(ReadinessTest, FailuresAreKeptAsLongAndThenGone) {
  VirtualClock clock;
  Status state = Error{ErrorCode::kUnavailable, "the disk is full"};
  Readiness readiness([&] { return state; }, clock);
  EXPECT_EQ(readiness.Check().error().message, "the disk is full");
  state = Ok();
  EXPECT_FALSE(readiness.Check().ok());
  clock.Advance(Readiness::kValidity);
  EXPECT_TRUE(readiness.Check().ok());
}

TEST(ReadinessTest, NoCallerWaitsBehindACheckThatHangs) {
  SystemClock clock;
  std::promise<void> begun;
  std::promise<void> end;
  Readiness readiness(
      [&]() -> Status {
        begun.set_value();
        end.get_future().wait();
        return Ok();
      },
      clock);
  auto first = std::async(std::launch::async, [&] { return readiness.Check().ok(); });
  begun.get_future().wait();
  EXPECT_FALSE(readiness.Check().ok());  // At once: nothing is known yet.
  end.set_value();
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(readiness.Check().ok());
}

}  // namespace readiness_test
}  // namespace zeus::server
