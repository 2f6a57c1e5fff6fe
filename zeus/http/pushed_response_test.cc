#include "zeus/http/pushed_response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "zeus/base/ticker.h"
#include "zeus/http/client.h"
#include "zeus/http/server.h"

namespace zeus::http {
namespace pushed_response_test {

using ::testing::HasSubstr;

TEST(PushedResponseTest, NewsComeOnceAndWakeOnce) {
  PushedResponse response([] {});
  int wakes = 0;
  response.WakeBy([&] { ++wakes; });
  EXPECT_TRUE(response.Next().empty());
  response.Start({.body = "a"});
  response.Push("b");
  EXPECT_EQ(wakes, 1);
  const PushedResponse::News news = response.Next();
  EXPECT_TRUE(news.head);
  EXPECT_EQ(news.bytes, "ab");
  EXPECT_FALSE(news.ended);
  response.End();
  EXPECT_EQ(wakes, 2);
  EXPECT_TRUE(response.Next().ended);
  EXPECT_TRUE(response.Next().empty());
}

TEST(PushedResponseTest, WhatIsOfferedIsPulledWhenTheServerLooks) {
  std::string waiting = "old";
  PushedResponse response([] {},
                          [&]() -> PushedResponse::SharedBytes {
                            return std::make_shared<const std::string>(std::exchange(waiting, ""));
                          });
  int wakes = 0;
  response.WakeBy([&] { ++wakes; });
  response.Offer();
  waiting = "new";
  response.Offer();
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(response.Next().bytes, "new");
  response.Offer();
  EXPECT_EQ(wakes, 2);
  EXPECT_TRUE(response.Next().empty());
}

TEST(PushedResponseTest, PulledBytesAreSharedWhereNothingElseIsNew) {
  const auto bytes = std::make_shared<const std::string>("shared");
  PushedResponse response([] {}, [&] { return bytes; });
  EXPECT_FALSE(response.NextOffered());
  response.Offer();
  EXPECT_EQ(response.NextOffered().value(), bytes);
  EXPECT_FALSE(response.NextOffered());
  response.Offer();
  response.End();
  EXPECT_FALSE(response.NextOffered());
  const PushedResponse::News news = response.Next();
  EXPECT_EQ(news.bytes, "shared");
  EXPECT_TRUE(news.ended);
}

TEST(PushedResponseTest, LeavingIsReportedOnce) {
  int left = 0;
  PushedResponse response([&] { ++left; });
  response.ClientLeft();
  response.ClientLeft();
  EXPECT_EQ(left, 1);
}

// Hands its responses to the test, which completes them.
class PushHandler final : public RequestHandler {
 public:
  Work Classify(const Request&) const override { return Work::kImmediate; }
  Admission Admit(const Request&) override { return {}; }
  Answer Handle(Request& request) override {
    if (request.target == "/plain") return {.body = "plain"};
    auto response = std::make_shared<PushedResponse>([this] {
      const std::lock_guard lock(mutex_);
      left_ = true;
      changed_.notify_all();
    });
    const std::lock_guard lock(mutex_);
    response_ = response;
    changed_.notify_all();
    return {.pushed = response};
  }
  Answer Refusal(int status, const std::string& why) override {
    return RefusalAnswer(status, "refused", why);
  }
  void Finished(const FinishedRequest&) override {}

  std::shared_ptr<PushedResponse> WaitForResponse() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return response_ != nullptr; });
    return std::exchange(response_, nullptr);
  }
  void WaitUntilLeft() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return left_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<PushedResponse> response_;
  bool left_ = false;
};

class PushedServerTest : public ::testing::Test {
 protected:
  PushedServerTest()
      : server_(Server::Start({.listen = "127.0.0.1:0"}, handler_, counts_, clock_).value()),
        client_(Client::Create({.url = server_->url(), .keep_connection = true}).value()) {}

  // Sends a request on another thread, completes it here, and returns the reply.
  template <class Complete>
  Result<Reply> Ask(Complete complete) {
    Result<Reply> reply = Error{ErrorCode::kInternal, "no reply"};
    {
      std::mutex mutex;
      std::condition_variable changed;
      bool done = false;
      Ticker caller("caller", [&] {
        const std::lock_guard lock(mutex);
        if (!done) reply = client_->Send({.path = "/pushed"});
        done = true;
        changed.notify_all();
        return Ticker::kWhenWoken;
      });
      complete(*handler_.WaitForResponse());
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return done; });
    }
    return reply;
  }

  SystemClock clock_;
  PushHandler handler_;
  ConnectionCounts counts_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(PushedServerTest, PiecesArriveInOrderAndTheConnectionGoesOn) {
  for (int round = 0; round < 3; ++round) {
    const auto reply = Ask([](PushedResponse& response) {
      response.Start({.status = 201, .body = "0,"});
      for (int i = 1; i < 100; ++i) response.Push(std::to_string(i) + ",");
      response.End();
    });
    ASSERT_TRUE(reply.ok()) << reply.error().message;
    EXPECT_EQ(reply.value().status, 201);
    EXPECT_THAT(reply.value().body, HasSubstr("0,1,2,3,"));
    EXPECT_THAT(reply.value().body, HasSubstr("98,99,"));
    EXPECT_EQ(client_->Send({.path = "/plain"}).value().body, "plain");
  }
}

TEST_F(PushedServerTest, AWholeAnswerHasALength) {
  const auto reply =
      Ask([](PushedResponse& response) { response.Finish({.status = 404, .body = "nothing"}); });
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply.value().status, 404);
  EXPECT_EQ(reply.value().body, "nothing");
  EXPECT_EQ(client_->Send({.path = "/plain"}).value().body, "plain");
}

TEST_F(PushedServerTest, AnAbortedResponseIsAnErrorOfTheClient) {
  const auto reply = Ask([](PushedResponse& response) {
    response.Start({.body = "beginning"});
    response.Abort();
  });
  EXPECT_FALSE(reply.ok());
}

TEST_F(PushedServerTest, AClientThatLeavesIsReported) {
  const auto reply = Ask([this](PushedResponse& response) {
    response.Start({.body = "beginning"});
    client_->Interrupt();
    handler_.WaitUntilLeft();
  });
  EXPECT_FALSE(reply.ok());
}

}  // namespace pushed_response_test
}  // namespace zeus::http
