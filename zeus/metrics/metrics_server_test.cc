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
  const auto address = http::ParseListenAddress(url.substr(std::string("http://").size()));
  const auto second = MetricsServer::Start(address.value(), [] { return ""; });
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr("cannot listen on 127.0.0.1:"));
}

TEST(MetricsServerTest, AUnixSocketIsRefused) {
  const auto server = MetricsServer::Start({.socket_path = "/tmp/x"}, [] { return ""; });
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error().code, ErrorCode::kInvalidArgument);
}

TEST(MetricsServerTest, AServerThatIsStoppedAtOnceStops) {
  for (int i = 0; i < 50; ++i) StartServer();
}

}  // namespace metrics_server_test
}  // namespace zeus
