// Loads of processes that die or are slow.
#include <gtest/gtest.h>

#include <cstdint>

#include "zeus/device/sim/gpu_core.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus::sim {
namespace gpu_core_process_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using testing::Draw;
using testing::Model;

LoadSpec LoadOfProcess(int pid) {
  LoadSpec spec = Draw(200_W);
  spec.pid = pid;
  return spec;
}

TEST(GpuCoreProcessTest, ALoadEndsOneTimeoutAfterItsLastHeartbeat) {
  GpuCore core(Model("V100"), 1, 0);
  const LoadSpec spec = LoadOfProcess(42);
  const auto id = core.AttachLoad(spec);
  ASSERT_TRUE(id.ok());
  core.AdvanceTo(2s);
  EXPECT_EQ(core.Heartbeat(id.value(), spec).value(), id.value());
  core.AdvanceTo(4.9s);
  EXPECT_EQ(core.processes().size(), 1U);
  core.AdvanceTo(5s);
  EXPECT_TRUE(core.processes().empty());
}

TEST(GpuCoreProcessTest, EveryCopyLetsALoadEndAtTheSameTime) {
  GpuCore often(Model("V100"), 1, 0);
  ASSERT_TRUE(often.AttachLoad(LoadOfProcess(42)).ok());
  GpuCore seldom = often;
  std::uint64_t counter = 0;
  for (Seconds time(0); time <= Seconds(10); time += 10ms) {
    often.AdvanceTo(time);
    ASSERT_GE(often.counter_millijoules().value(), counter);
    counter = often.counter_millijoules().value();
  }
  often.AdvanceTo(20s);
  seldom.AdvanceTo(20s);
  EXPECT_EQ(often.exact_energy(), seldom.exact_energy());
  EXPECT_EQ(often.counter_millijoules().value(), seldom.counter_millijoules().value());
}

TEST(GpuCoreProcessTest, ALateHeartbeatAttachesTheLoadAgainFromNowOn) {
  GpuCore core(Model("V100"), 1, 0);
  const LoadSpec spec = LoadOfProcess(42);
  const auto id = core.AttachLoad(spec);
  ASSERT_TRUE(id.ok());
  core.AdvanceTo(60s);
  const Joules drawn = core.exact_energy();
  const auto again = core.Heartbeat(id.value(), spec);
  ASSERT_TRUE(again.ok());
  EXPECT_NE(again.value(), id.value());
  EXPECT_EQ(core.exact_energy(), drawn);
  EXPECT_GT(core.exact_power(), 190_W);
  core.AdvanceTo(63s);
  EXPECT_TRUE(core.processes().empty());
}

TEST(GpuCoreProcessTest, ALoadWithoutAProcessNeedsNoHeartbeat) {
  GpuCore core(Model("V100"), 1, 0);
  ASSERT_TRUE(core.AttachLoad(LoadOfProcess(0)).ok());
  core.AdvanceTo(1h);
  EXPECT_GT(core.exact_power(), 190_W);
}

TEST(GpuCoreProcessTest, AHeartbeatDoesNotOutlastTheDuration) {
  GpuCore core(Model("V100"), 1, 0);
  LoadSpec spec = LoadOfProcess(42);
  spec.duration = 4s;
  const auto id = core.AttachLoad(spec);
  ASSERT_TRUE(id.ok());
  core.AdvanceTo(2s);
  ASSERT_TRUE(core.Heartbeat(id.value(), spec).ok());
  core.AdvanceTo(4s);
  EXPECT_TRUE(core.processes().empty());
}

}  // namespace gpu_core_process_test
}  // namespace zeus::sim
