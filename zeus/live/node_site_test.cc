#include "zeus/live/node_site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/http/pushed_response.h"

namespace zeus::live::node_site_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class NodeSiteTest : public ::testing::Test {
 protected:
  NodeSiteTest() {
    Node node;
    node.gpus.push_back(
        std::make_unique<sim::SimulatedGpu>(clock_, *sim::FindGpuModel("A100").value()));
    node.absent.push_back({.what = "CPU energy", .reason = "no RAPL here", .fix = "none"});
    recorder_ =
        std::move(NodeMonitor::Open(clock_, std::move(node), {.thread = false, .share = false}))
            .value();
    recorder_->monitor().Step();
    site_ = std::make_unique<NodeSite>(
        *recorder_,
        NodeSite::Options{.metrics = [] { return "zeus_up 1\n"; },
                          .costs = [] { return std::vector<std::string>{"cost: 1 EUR"}; },
                          .origins = {.local = true, .listen_host = "127.0.0.1"}});
  }

  http::Answer Get(const std::string& target, const std::string& host = "localhost:9400") {
    http::Request request{.method = "GET", .target = target, .host = host};
    http::Admission admission = site_->Admit(request);
    return admission.refusal ? *std::move(admission.refusal) : site_->Handle(request);
  }
  Json GetJson(const std::string& target) {
    const http::Answer answer = Get(target);
    EXPECT_EQ(answer.status, 200) << answer.body;
    auto json = ParseJson(answer.body);
    EXPECT_TRUE(json.ok()) << answer.body;
    return json.ok() ? std::move(json).value() : Json();
  }

  SystemClock clock_;
  std::unique_ptr<NodeMonitor> recorder_;
  std::unique_ptr<NodeSite> site_;
};

TEST_F(NodeSiteTest, PageMetricsAndHealthAreServed) {
  EXPECT_EQ(GetJson("/app.json")["features"], Json::array({"node", "costs"}));
  EXPECT_THAT(Get("/").content_type, StartsWith("text/html"));
  EXPECT_EQ(Get("/metrics").body, "zeus_up 1\n");
  EXPECT_EQ(Get("/-/healthy").body, "zeus is healthy\n");
  EXPECT_EQ(GetJson("/v1/costs")["lines"][0], "cost: 1 EUR");
}

TEST_F(NodeSiteTest, TheNodeAndItsReadingsAreTold) {
  const Json node = GetJson("/v1/node");
  ASSERT_EQ(node["gpus"].size(), 1U);
  const std::string device = node["gpus"][0]["device"];
  EXPECT_THAT(device, StartsWith("GPU-"));
  EXPECT_EQ(node["absent"][0]["reason"], "no RAPL here");
  const Json readings = GetJson("/v1/readings?devices=" + device);
  EXPECT_EQ(readings["devices"][0]["device"], device);
  EXPECT_TRUE(readings["devices"][0]["throttle"].is_array());
  const Json history = GetJson("/v1/history?step=10");
  EXPECT_EQ(history["devices"][0]["device"], device);
  const double now = readings["at_seconds"];
  const Json energy = GetJson("/v1/energy?since=" + std::to_string(now - 1));
  EXPECT_EQ(energy["devices"][0]["device"], device);
}

TEST_F(NodeSiteTest, FollowersGetTheReadingsAtOnce) {
  const http::Answer answer = Get("/v1/stream?period=0.1");
  ASSERT_TRUE(answer.pushed) << answer.body;
  const auto news = answer.pushed->Next();
  EXPECT_THAT(news.bytes, HasSubstr("event: reading\ndata: {\"at_seconds\":"));
}

TEST_F(NodeSiteTest, MistakesAreNamed) {
  EXPECT_EQ(Get("/v1/history?step=7").status, 400);
  EXPECT_EQ(Get("/v1/history?step=1.5").status, 400);
  EXPECT_EQ(Get("/v1/history?steps=1").status, 400);
  EXPECT_EQ(Get("/v1/energy").status, 400);
  EXPECT_EQ(Get("/v1/readings?devices=gpu:9").status, 404);
  EXPECT_EQ(Get("/v1/stream?period=soon").status, 400);
  EXPECT_EQ(Get("/v1/leases").status, 404);
}

TEST_F(NodeSiteTest, AnotherHostNameOnLoopbackIsRefused) {
  for (const char* target : {"/", "/v1/node", "/metrics"})
    EXPECT_EQ(Get(target, "attacker.example").status, 403) << target;
}

}  // namespace
}  // namespace zeus::live::node_site_test
