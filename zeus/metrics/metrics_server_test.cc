#include "zeus/metrics/metrics_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <string>
#include <utility>

namespace zeus {
namespace metrics_server_test {

using ::testing::HasSubstr;

std::unique_ptr<MetricsServer> StartServer() {
  return std::move(MetricsServer::Start({.host = "127.0.0.1"}, [] { return "up 1\n"; })).value();
}

TEST(ListenAddressTest, APortAloneIsThisMachineOnly) {
  for (const char* text : {"9400", ":9400", "127.0.0.1:9400"}) {
    const auto address = ParseListenAddress(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address.value().host, "127.0.0.1");
    EXPECT_EQ(address.value().port, 9400);
  }
  EXPECT_EQ(ParseListenAddress("0.0.0.0:0").value().host, "0.0.0.0");
  EXPECT_EQ(ParseListenAddress("[::1]:1").value().host, "::1");
}

TEST(ListenAddressTest, WhatIsNoAddressIsQuoted) {
  for (const char* text : {"", "host", "host:", "host:x", "::1:80", ":70000", "[]:1", ":-1"}) {
    const auto address = ParseListenAddress(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_THAT(address.error().message, HasSubstr("host:port"));
  }
}

TEST(MetricsServerTest, AnswersWithTheMetrics) {
  const auto server = StartServer();
  httplib::Client client(server->url());
  const auto answer = client.Get("/metrics");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "up 1\n");
  EXPECT_THAT(answer->get_header_value("Content-Type"), HasSubstr("version=0.0.4"));
  EXPECT_EQ(client.Get("/-/healthy")->status, 200);
  EXPECT_THAT(client.Get("/")->body, HasSubstr("/metrics"));
  EXPECT_EQ(client.Get("/none")->status, 404);
  EXPECT_EQ(client.Put("/metrics", "x", "text/plain")->status, 404);
}

TEST(MetricsServerTest, APortThatIsTakenIsAnError) {
  const auto first = StartServer();
  const std::string url = first->url();
  const auto address = ParseListenAddress(url.substr(std::string("http://").size()));
  const auto second = MetricsServer::Start(address.value(), [] { return ""; });
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr("cannot listen on 127.0.0.1:"));
}

TEST(MetricsServerTest, AServerThatIsStoppedAtOnceStops) {
  for (int i = 0; i < 50; ++i) StartServer();
}

}  // namespace metrics_server_test
}  // namespace zeus
