#include "zeus/daemon/api/waiting_answers.h"

#include <gtest/gtest.h>

#include <atomic>

#include "zeus/base/clock.h"

namespace zeus::daemon::waiting_answers_test {
namespace {

using namespace std::chrono_literals;

class WaitingAnswersTest : public testing::Test {
 protected:
  // The answer is there once `ready_` is set.
  http::Answer Wait(Seconds timeout) {
    return waiting_.Wait({.topics = {"lease_1", "lease_2"},
                          .look = [this]() -> std::optional<http::Answer> {
                            if (!ready_) return std::nullopt;
                            return http::Answer{.status = 201};
                          },
                          .give_up = [] { return http::Answer{.status = 503}; },
                          .timeout = timeout});
  }

  SystemClock clock_;
  std::atomic<bool> ready_ = false;
  WaitingAnswers waiting_{clock_};
};

TEST_F(WaitingAnswersTest, AnAnswerThatIsThereIsGivenAtOnce) {
  ready_ = true;
  const http::Answer answer = Wait(60s);
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.pushed, nullptr);
  EXPECT_EQ(waiting_.size(), 0U);
}

TEST_F(WaitingAnswersTest, AChangeOfAnyTopicCompletesTheAnswer) {
  const http::Answer answer = Wait(60s);
  ASSERT_NE(answer.pushed, nullptr);
  waiting_.Notify("lease_2");
  EXPECT_FALSE(answer.pushed->Next().whole.has_value());
  ready_ = true;
  waiting_.Notify("another");
  EXPECT_FALSE(answer.pushed->Next().whole.has_value());
  waiting_.Notify("lease_2");
  const auto whole = answer.pushed->Next().whole;
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->status, 201);
  EXPECT_EQ(waiting_.size(), 0U);
  waiting_.Notify("lease_1");
  EXPECT_FALSE(answer.pushed->Next().whole.has_value());
}

TEST_F(WaitingAnswersTest, AnAnswerThatNeverComesIsGivenUp) {
  const http::Answer answer = Wait(1ms);
  std::optional<http::Answer> whole;
  while (!whole) whole = answer.pushed->Next().whole;
  EXPECT_EQ(whole->status, 503);
}

TEST_F(WaitingAnswersTest, AClientThatLeavesWaitsNoLonger) {
  const http::Answer answer = Wait(60s);
  EXPECT_GT(waiting_.size(), 0U);
  answer.pushed->ClientLeft();
  EXPECT_EQ(waiting_.size(), 0U);
}

}  // namespace
}  // namespace zeus::daemon::waiting_answers_test
