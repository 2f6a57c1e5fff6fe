#include "zeus/export/push_gateway.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace zeus {
namespace push_gateway_test {

using ::testing::HasSubstr;

// A gateway that remembers what it was sent.
class Gateway {
 public:
  Gateway() : port_(server_.bind_to_any_port("127.0.0.1")) {
    server_.Put("(/.*)", [this](const httplib::Request& request, httplib::Response& response) {
      path_ = request.path;
      body_ = request.body;
      response.status = status_;
      response.set_content("told so\n", "text/plain");
    });
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~Gateway() {
    server_.stop();
    thread_.join();
  }
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  void AnswerWith(int status) { status_ = status; }
  const std::string& path() const { return path_; }
  const std::string& body() const { return body_; }

 private:
  httplib::Server server_;
  int port_;
  int status_ = 200;
  std::string path_;
  std::string body_;
  std::thread thread_;
};

std::unique_ptr<PushGateway> Connect(const std::string& url) {
  return std::move(PushGateway::Create({.url = url, .job = "train", .instance = "rank0"})).value();
}

TEST(PushGatewayTest, RanksHaveGroupsOfTheirOwn) {
  EXPECT_EQ(PushPath({.url = "", .job = "train", .instance = "node1:0"}),
            "/metrics/job/train/instance/node1:0");
  EXPECT_EQ(PushPath({.url = "", .job = "a/b", .instance = "rank 1"}),
            "/metrics/job@base64/YS9i/instance@base64/cmFuayAx");
  EXPECT_EQ(PushPath({.url = "", .job = "a?", .instance = "\xff\xfe"}),
            "/metrics/job@base64/YT8=/instance@base64/__4=");
}

TEST(PushGatewayTest, ReplacesItsGroup) {
  Gateway gateway;
  const auto push = Connect(gateway.url() + "/behind/a/proxy/");
  ASSERT_TRUE(push->Push("up 1\n").ok());
  EXPECT_EQ(gateway.path(), "/behind/a/proxy/metrics/job/train/instance/rank0");
  EXPECT_EQ(gateway.body(), "up 1\n");
}

TEST(PushGatewayTest, ARefusalIsAnErrorAndTheNextPushWorks) {
  Gateway gateway;
  const auto push = Connect(gateway.url());
  gateway.AnswerWith(400);
  const Status refused = push->Push("nonsense");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("answered 400: told so"));
  push->TryPush("nonsense");
  EXPECT_FALSE(push->working());
  gateway.AnswerWith(202);
  push->TryPush("up 1\n");
  EXPECT_TRUE(push->working());
}

TEST(PushGatewayTest, AGatewayThatIsNotThereIsNoMoreThanAnError) {
  std::string url;
  {
    const Gateway gone;
    url = gone.url();
  }
  const Status status = Connect(url)->Push("up 1\n");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
}

TEST(PushGatewayTest, WhatIsNoGatewayIsRefusedAtOnce) {
  for (const char* url : {"", "host:9091", "ftp://host", "http://", "http:///x"})
    EXPECT_FALSE(PushGateway::Create({.url = url, .job = "j", .instance = "i"}).ok()) << url;
  EXPECT_FALSE(PushGateway::Create({.url = "http://host", .job = "", .instance = "i"}).ok());
}

}  // namespace push_gateway_test
}  // namespace zeus
