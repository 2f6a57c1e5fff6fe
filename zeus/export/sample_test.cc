#include "zeus/export/sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/export/prometheus.h"
#include "zeus/export/testing/records.h"

namespace zeus {
namespace sample_test {

using namespace std::chrono_literals;
using namespace zeus::literals;
using ::testing::HasSubstr;

class NodeSamplerTest : public ::testing::Test {
 protected:
  NodeSamplerTest() {
    auto gpu = std::make_unique<sim::SimulatedGpu>(clock_, *sim::FindGpuModel("V100").value());
    gpu_ = gpu.get();
    Node node;
    node.gpus.push_back(std::move(gpu));
    NodeMonitorOptions options;
    options.thread = false;  // Record() takes the steps.
    options.share = false;   // Time is virtual: no other process lives in it.
    node_ = std::move(NodeMonitor::Open(clock_, std::move(node), std::move(options))).value();
    sampler_ = std::make_unique<NodeSampler>(*node_);
  }

  void Record(Seconds time) {
    const TimePoint end = clock_.Now() + time;
    while (clock_.Now() < end) clock_.SleepUntil(std::min(end, node_->monitor().Step()));
  }

  VirtualClock clock_;
  sim::SimulatedGpu* gpu_ = nullptr;
  std::unique_ptr<NodeMonitor> node_;
  std::unique_ptr<NodeSampler> sampler_;
};

TEST_F(NodeSamplerTest, ASampleTellsWhoTheDeviceIsAndWhatItUsed) {
  ASSERT_TRUE(gpu_->AttachLoad({.demand = 200_W, .duration = 1h}).ok());
  Record(10s);
  const Sample sample = sampler_->Take();
  ASSERT_EQ(sample.devices.size(), 1U);
  const DeviceSample& gpu = sample.devices[0];
  EXPECT_EQ(gpu.identity.name, "gpu:0");
  EXPECT_EQ(gpu.identity.model, gpu_->identity().model);
  EXPECT_EQ(gpu.identity.uuid, gpu_->identity().uuid);
  EXPECT_EQ(gpu.limit_range->max, 250_W);
  EXPECT_EQ(sample.recorded, 10s);
  ASSERT_TRUE(gpu.present.total.ok() && gpu.present.power.ok());
  EXPECT_NEAR(gpu.present.total.value().value(), 2000, 100);
  EXPECT_NEAR(gpu.present.power.value().value(), 200, 20);
}

TEST_F(NodeSamplerTest, AGpuThatIsLostKeepsItsEnergyAndIsDown) {
  Record(5s);
  const Joules before = sampler_->Take().devices[0].present.total.value();
  gpu_->InjectFault({.kind = sim::FaultKind::kLost});
  Record(5s);
  const Sample sample = sampler_->Take();
  EXPECT_GE(sample.devices[0].present.total.value(), before);
  const Error* reason = WhyUnreadable(sample.devices[0].present);
  ASSERT_NE(reason, nullptr);
  EXPECT_FALSE(reason->message.empty());
  MetricSet metrics;
  AddSample(sample, metrics);
  EXPECT_THAT(metrics.Text(), HasSubstr("zeus_device_up{device=\"gpu:0\"} 0\n"));
}

TEST_F(NodeSamplerTest, EnergyNeverFallsBetweenSamplesAlsoAcrossADriverReload) {
  Joules last{0};
  for (int i = 0; i < 200; ++i) {
    if (i == 100) gpu_->InjectFault({.kind = sim::FaultKind::kDriverReload});
    Record(37ms);
    const auto total = sampler_->Take().devices[0].present.total;
    ASSERT_TRUE(total.ok()) << i;
    EXPECT_GE(total.value(), last) << i;
    last = total.value();
  }
}

TEST(SampleCsvTest, ARowPerDeviceWithEmptyCellsForWhatIsNotKnown) {
  const auto rows = SampleCsvRows(zeus::testing::ASample());
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0],
            "1700000000.250000,4.000000,gpu:0,A100,GPU-1,250,1.5,1000,3,counter,40,0.9,1410000000,"
            "300,280,,");
  EXPECT_EQ(rows[1], "1700000000.250000,4.000000,gpu:1,A100,GPU-2,,,,,,,,,,,,GPU fell off the bus");
}

TEST(SampleCsvTest, RowsHaveAsManyCellsAsTheHeader) {
  const auto commas = std::ranges::count(SampleCsvHeader(), ',');
  for (const std::string& row : SampleCsvRows(zeus::testing::ASample()))
    EXPECT_EQ(std::ranges::count(row, ','), commas) << row;
}

}  // namespace sample_test
}  // namespace zeus
