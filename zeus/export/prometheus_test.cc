#include "zeus/export/prometheus.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "zeus/export/testing/records.h"

namespace zeus {
namespace prometheus_test {

using ::testing::HasSubstr;
using ::testing::Not;
using zeus::testing::ASample;
using zeus::testing::AWindow;

std::string MetricText(const Sample& sample) {
  MetricSet set;
  AddSample(sample, set);
  return set.Text();
}

std::string MetricText(const WindowMetrics& windows) {
  MetricSet set;
  windows.AddTo(set);
  return set.Text();
}

TEST(PrometheusTest, AGpuIsDescribedByItsLabels) {
  const std::string text = MetricText(ASample());
  EXPECT_THAT(text, HasSubstr("zeus_gpu_energy_joules_total{gpu=\"0\",uuid=\"GPU-1\","
                              "model=\"A100\",source=\"counter\"} 1000\n"));
  EXPECT_THAT(text, HasSubstr("kind=\"update\"} 250\n"));
  EXPECT_THAT(text, HasSubstr("kind=\"instant\"} 251\n"));
  EXPECT_THAT(text, HasSubstr("kind=\"enforced\"} 280\n"));
  EXPECT_THAT(text, HasSubstr("kind=\"max\"} 400\n"));
  EXPECT_THAT(text, HasSubstr("domain=\"graphics\"} 1410000000\n"));
  EXPECT_THAT(text, HasSubstr("zeus_cpu_energy_joules_total{cpu=\"0\",zone=\"package\""));
}

TEST(PrometheusTest, ALostGpuIsDownAndHasNoSeriesThatLookLikeZero) {
  const std::string text = MetricText(ASample());
  EXPECT_THAT(text, HasSubstr("zeus_device_up{device=\"gpu:0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("zeus_device_up{device=\"gpu:1\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("GPU-2")));
}

TEST(PrometheusTest, TheNamesOfTheReferenceAreThereToo) {
  const std::string text = MetricText(ASample());
  EXPECT_THAT(text, HasSubstr("energy_monitor_gpu_energy_joules_total{window=\"all\",index=\"0\"} "
                              "1000\n"));
  EXPECT_THAT(text, HasSubstr("power_monitor_gpu_power_watts{window=\"all\",index=\"0\"} 250\n"));
}

TEST(PrometheusTest, WindowsAreCountedByNameAndDevice) {
  WindowMetrics windows;
  for (int i = 0; i < 3; ++i) windows.Observe(AWindow("step"));
  const std::string text = MetricText(windows);
  EXPECT_THAT(text,
              HasSubstr("zeus_window_energy_joules_count{window=\"step\",device=\"gpu:0\"} 3\n"));
  EXPECT_THAT(text,
              HasSubstr("zeus_window_energy_joules_sum{window=\"step\",device=\"cpu:0\"} 60\n"));
  EXPECT_THAT(text, HasSubstr("energy_monitor_gpu_energy_joules_bucket{window=\"step\",index=\"0\","
                              "le=\"100\"} 3\n"));
  EXPECT_THAT(text,
              HasSubstr("energy_monitor_gpu_energy_joules_total{window=\"step\",index=\"0\"} 300"));
  EXPECT_THAT(text, Not(HasSubstr("device=\"gpu:1\"")));
}

TEST(PrometheusTest, ANamePerStepDoesNotGrowWithoutBound) {
  WindowMetrics windows(2);
  for (int i = 0; i < 10; ++i) windows.Observe(AWindow(fmt::format("step {}", i)));
  const std::string text = MetricText(windows);
  EXPECT_THAT(text, HasSubstr("window=\"step 1\""));
  EXPECT_THAT(text, Not(HasSubstr("window=\"step 2\"")));
  EXPECT_THAT(text,
              HasSubstr("zeus_window_energy_joules_count{window=\"other\",device=\"gpu:0\"} 8\n"));
}

TEST(PrometheusTest, AWindowCalledAllIsNotTheWholeRecording) {
  WindowMetrics windows;
  windows.Observe(AWindow("all"));
  EXPECT_THAT(MetricText(windows),
              HasSubstr("energy_monitor_gpu_energy_joules_total{window=\"window "
                        "all\",index=\"0\"} 100\n"));
}

TEST(PrometheusTest, TheProcessTellsItsVersionAndCost) {
  MetricSet set;
  AddProcess("1.2.3", Seconds(0.5), set);
  EXPECT_THAT(set.Text(), HasSubstr("zeus_self_cpu_seconds_total 0.5\n"));
  EXPECT_THAT(set.Text(), HasSubstr("zeus_build_info{version=\"1.2.3\"} 1\n"));
}

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

}  // namespace prometheus_test
}  // namespace zeus
