#include "zeus/fleet/node_report.h"

#include <gtest/gtest.h>

#include <string>

#include "zeus/base/json.h"

namespace zeus::fleet::node_report_test {
namespace {

using namespace zeus::literals;

Json Parsed(const std::string& text) { return ParseJson(text).value(); }

const char* const kNode = R"({"host": "n1", "gpus": [
  {"device": "GPU-a", "name": "gpu:0", "model": "A100"},
  {"device": "GPU-b", "name": "gpu:1", "model": "A100", "lost": true}], "cpus": [], "absent": []})";

TEST(NodeReportTest, TheLatestWholeStepCounts) {
  const Json history = Parsed(R"({"at_seconds": 500, "devices": [
    {"device": "GPU-a", "mean_watts": [100, 200, 300, 1], "idle_watts": [100, 0, 0, 0]},
    {"device": "GPU-b", "mean_watts": [50, null, null, null], "idle_watts": [50, null, null, null]},
    {"device": "cpu:0", "mean_watts": [20, 20, 20, 20]}]})");
  const auto report = ReportOf(Parsed(kNode), history, {{"A100", 250_W}});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report.value().power, 300_W + 50_W + 20_W);
  EXPECT_EQ(report.value().idle, 50_W);
  EXPECT_EQ(report.value().above, 50_W);
  EXPECT_EQ(report.value().gpus, 2U);
  EXPECT_EQ(report.value().model, "2 × A100");
  ASSERT_EQ(report.value().faults.size(), 1U);
  EXPECT_EQ(report.value().faults[0], "gpu:1 is lost");
  EXPECT_DOUBLE_EQ(NextSince(history), 430);
  ASSERT_GE(report.value().past.size(), 2U);
  EXPECT_EQ(report.value().past.back(), 220_W);
}

TEST(NodeReportTest, EachModelOfAMixedNodeIsCounted) {
  const auto report = ReportOf(Parsed(R"({"host": "n1", "gpus": [
    {"device": "GPU-a", "name": "gpu:0", "model": "H100"},
    {"device": "GPU-b", "name": "gpu:1", "model": "A100"},
    {"device": "GPU-c", "name": "gpu:2", "model": "H100"}], "cpus": [], "absent": []})"),
                               Parsed(R"({"at_seconds": 1, "devices": []})"), {});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report.value().model, "1 × A100, 2 × H100");
}

TEST(NodeReportTest, AnIdleGpuIsNotAboveItsLimitAsWell) {
  const Json history = Parsed(R"({"at_seconds": 1, "devices": [
    {"device": "GPU-a", "mean_watts": [60, 60], "idle_watts": [60, 60]}]})");
  const auto report = ReportOf(Parsed(kNode), history, {{"A100", 40_W}});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report.value().idle, 60_W);
  EXPECT_EQ(report.value().above, 0_W);
}

TEST(NodeReportTest, AnswersOfAnyShapeAreSurvived) {
  for (const char* node : {"null", "[]", "3", R"({"gpus": 3})", R"({"gpus": [null, 3, {}]})"})
    for (const char* history :
         {"null", "[]", R"({"devices": 3})", R"({"devices": [null, {"mean_watts": "x"}]})",
          R"({"devices": [{"mean_watts": [null, "x", {}]}]})"})
      (void)ReportOf(Parsed(node), Parsed(history), {});
  EXPECT_FALSE(ReportOf(Parsed("null"), Parsed("{}"), {}).ok());
  for (const char* answer :
       {"null", R"({"status": "success"})", R"({"status": "error", "error": "bad query"})",
        R"({"status": "success", "data": {"result": 3}})"})
    EXPECT_FALSE(ByInstance(Parsed(answer)).ok()) << answer;
}

TEST(NodeReportTest, PrometheusValuesAreFoundByInstance) {
  const auto values = ByInstance(Parsed(R"({"status": "success", "data": {"result": [
    {"metric": {"instance": "n1:9400"}, "value": [1, "12.5"]},
    {"metric": {"instance": "n2:9400"}, "value": [1, "NaN"]},
    {"metric": {}, "value": [1, "3"]}, {"metric": {"instance": "n3"}, "value": []}]}})"));
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values.value(), (std::map<std::string, double>{{"n1:9400", 12.5}}));
}

TEST(NodeReportTest, BestLimitsAreRead) {
  BestLimits limits;
  EXPECT_TRUE(AddBestLimit("NVIDIA A100-SXM4-40GB=250", limits).ok());
  EXPECT_EQ(limits.at("NVIDIA A100-SXM4-40GB"), 250_W);
  for (const char* wrong : {"", "=250", "A100", "A100=", "A100=-1", "A100=x", "A100=inf"})
    EXPECT_FALSE(AddBestLimit(wrong, limits).ok()) << wrong;
}

}  // namespace
}  // namespace zeus::fleet::node_report_test
