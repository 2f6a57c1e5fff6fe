#include "zeus/live/node_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/device/sim/simulated_gpu.h"

namespace zeus::live::node_history_test {
namespace {

using namespace std::chrono_literals;
using namespace zeus::literals;

class NodeHistoryTest : public ::testing::Test {
 protected:
  NodeHistoryTest() {
    Node node;
    for (unsigned index = 0; index < 2; ++index) {
      auto gpu = std::make_unique<sim::SimulatedGpu>(clock_, *sim::FindGpuModel("A100").value(),
                                                     sim::SimulatedGpu::Options{.index = index});
      gpus_.push_back(gpu.get());
      node.gpus.push_back(std::move(gpu));
    }
    recorder_ =
        std::move(NodeMonitor::Open(clock_, std::move(node), {.thread = false, .share = false}))
            .value();
    devices_ = std::make_unique<NodeDevices>(*recorder_);
    history_ = std::make_unique<NodeHistory>(*recorder_);
  }

  // As a daemon does: it updates the history every few seconds.
  void Record(Seconds time) {
    const TimePoint end = clock_.Now() + time;
    while (clock_.Now() < end) {
      const TimePoint pause = std::min(end, clock_.Now() + Seconds(5));
      while (clock_.Now() < pause) clock_.SleepUntil(std::min(pause, recorder_->monitor().Step()));
      history_->Update();
    }
  }

  Json Ask(std::int64_t step, std::optional<double> since = std::nullopt) {
    HistoryRequest request{.since = since, .step = step};
    for (const NodeDevice& gpu : devices_->gpus()) request.devices.push_back(&gpu);
    const auto text = history_->Document(request);
    EXPECT_TRUE(text.ok());
    auto json = ParseJson(text.ok() ? text.value() : "{}");
    EXPECT_TRUE(json.ok()) << (text.ok() ? text.value() : "");
    return json.ok() ? std::move(json).value() : Json();
  }

  VirtualClock clock_;
  std::vector<sim::SimulatedGpu*> gpus_{};
  std::unique_ptr<NodeMonitor> recorder_;
  std::unique_ptr<NodeDevices> devices_;
  std::unique_ptr<NodeHistory> history_;
};

TEST_F(NodeHistoryTest, StepsAddUpToTheTrueEnergy) {
  const Joules before = gpus_[0]->ExactEnergy();
  ASSERT_TRUE(gpus_[0]->AttachLoad({.demand = 300_W, .duration = 100s}).ok());
  Record(180s);
  const double truth = (gpus_[0]->ExactEnergy() - before).value();
  for (const std::int64_t step : {1, 10, 60}) {
    const Json json = Ask(step);
    double sum = 0;
    for (const Json& watts : json["devices"][0]["mean_watts"])
      if (!watts.is_null()) sum += watts.get<double>() * static_cast<double>(step);
    EXPECT_NEAR(sum, truth, 0.05 * truth) << step;
  }
}

TEST_F(NodeHistoryTest, PowerWithoutWorkIsToldApart) {
  ASSERT_TRUE(gpus_[0]->AttachLoad({.demand = 300_W, .duration = 60s}).ok());
  Record(120s);
  const Json busy = Ask(10)["devices"][0];
  const double working = busy["mean_watts"][3].get<double>();
  EXPECT_GT(working, 200);
  EXPECT_LT(busy["idle_watts"][3].get<double>(), 0.1 * working);
  EXPECT_DOUBLE_EQ(busy["idle_watts"][10].get<double>(), busy["mean_watts"][10].get<double>());
  const Json idle = Ask(10)["devices"][1];
  EXPECT_GT(idle["mean_watts"][3].get<double>(), 20);
  EXPECT_DOUBLE_EQ(idle["idle_watts"][3].get<double>(), idle["mean_watts"][3].get<double>());
}

TEST_F(NodeHistoryTest, ALostGpuLeavesAGapThatIsNotFilled) {
  Record(30s);
  gpus_[0]->InjectFault({.kind = sim::FaultKind::kLost});
  Record(40s);
  gpus_[0]->ClearFaults();
  Record(30s);
  const Json json = Ask(1);
  const auto& lost = json["devices"][0]["mean_watts"];
  const auto& other = json["devices"][1]["mean_watts"];
  EXPECT_TRUE(lost[20].is_number());
  for (int second = 35; second < 65; ++second) {
    EXPECT_TRUE(lost[static_cast<std::size_t>(second)].is_null()) << second;
    EXPECT_TRUE(other[static_cast<std::size_t>(second)].is_number()) << second;
  }
  EXPECT_TRUE(lost[85].is_number());
}

TEST_F(NodeHistoryTest, ADayTakesTheMemoryOfADayAndAnswersFromItsBeginning) {
  // One look in a second, as while nobody watches.
  for (int second = 0; second < 3 * 3600; ++second) {
    clock_.Advance(1s);
    recorder_->monitor().Step();
    if (second % 5 == 0) history_->Update();
  }
  const Json minutes = Ask(60);
  EXPECT_DOUBLE_EQ(minutes["since_seconds"].get<double>(), 0);
  EXPECT_EQ(minutes["devices"][0]["mean_watts"].size(), 181U);
  EXPECT_TRUE(minutes["devices"][0]["mean_watts"][90].is_number());
  const Json seconds = Ask(1);
  EXPECT_EQ(seconds["devices"][0]["mean_watts"].size(), 600U);
  EXPECT_DOUBLE_EQ(seconds["since_seconds"].get<double>(), 3 * 3600 + 1 - 600);
}

TEST_F(NodeHistoryTest, AGpuThatAnswersLateIsRecordedFromThenOn) {
  gpus_[0]->InjectFault({.kind = sim::FaultKind::kLost});
  history_->Update();
  Record(20s);
  gpus_[0]->ClearFaults();
  Record(30s);
  const auto watts = Ask(1)["devices"][0]["mean_watts"];
  EXPECT_TRUE(watts[10].is_null());
  EXPECT_TRUE(watts[40].is_number());
}

TEST_F(NodeHistoryTest, OnlyWhatIsNewerIsSentToThoseWhoKnowTheRest) {
  Record(100s);
  const Json json = Ask(10, 75.5);
  EXPECT_DOUBLE_EQ(json["since_seconds"].get<double>(), 70);
  EXPECT_EQ(json["devices"][0]["mean_watts"].size(), 4U);
  EXPECT_EQ(Ask(10, 1e300)["devices"][0]["mean_watts"].size(), 0U);
  EXPECT_EQ(Ask(10, -1e300)["since_seconds"].get<double>(), 0);
}

TEST_F(NodeHistoryTest, AStepThatIsNotKeptIsRefused) {
  const auto refused = history_->Document({.step = 7});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace zeus::live::node_history_test
