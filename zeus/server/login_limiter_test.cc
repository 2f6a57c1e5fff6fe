#include "zeus/server/login_limiter.h"

#include <gtest/gtest.h>

namespace zeus::server {
namespace login_limiter_test {

using Verdict = LoginLimiter::Verdict;

class LoginLimiterTest : public ::testing::Test {
 protected:
  void Guess(int times) {
    for (int i = 0; i < times; ++i) ASSERT_EQ(limiter_.Judge("10.0.0.1", ""), Verdict::kReject);
  }

  VirtualClock clock_;
  LoginLimiter limiter_{clock_};
};

TEST_F(LoginLimiterTest, GuessesEnd) {
  Guess(LoginLimiter::kMostFailures);
  EXPECT_EQ(limiter_.Judge("10.0.0.1", ""), Verdict::kTooMany);
  // A right guess is not told from a wrong one any more.
  EXPECT_EQ(limiter_.Judge("10.0.0.1", "ci"), Verdict::kTooMany);
  EXPECT_EQ(limiter_.Judge("10.0.0.2", "ci"), Verdict::kAccept);
}

TEST_F(LoginLimiterTest, WhoWasLetInBeforeIsNotShutOutByANeighbour) {
  EXPECT_EQ(limiter_.Judge("10.0.0.1", "ci"), Verdict::kAccept);
  Guess(LoginLimiter::kMostFailures);
  EXPECT_EQ(limiter_.Judge("10.0.0.1", "ci"), Verdict::kAccept);
  EXPECT_EQ(limiter_.Judge("10.0.0.1", "other"), Verdict::kTooMany);
}

TEST_F(LoginLimiterTest, TimeForgives) {
  Guess(LoginLimiter::kMostFailures);
  clock_.Advance(LoginLimiter::kRefill);
  Guess(1);
  EXPECT_EQ(limiter_.Judge("10.0.0.1", ""), Verdict::kTooMany);
  clock_.Advance(LoginLimiter::kMostFailures * LoginLimiter::kRefill);
  Guess(LoginLimiter::kMostFailures);
}

TEST_F(LoginLimiterTest, ManyAddressesTakeBoundedMemoryAndHideNobodyWhoGuesses) {
  Guess(LoginLimiter::kMostFailures);
  for (std::size_t i = 0; i < 3 * LoginLimiter::kMostAddresses; ++i) {
    clock_.Advance(Seconds(1e-6));
    limiter_.Judge(std::to_string(i), "");
    if (i % 1000 == 0) {
      EXPECT_EQ(limiter_.Judge("10.0.0.1", ""), Verdict::kTooMany);
    }
  }
}

}  // namespace login_limiter_test
}  // namespace zeus::server
