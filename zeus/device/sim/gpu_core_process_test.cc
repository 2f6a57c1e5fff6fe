// What becomes of the load of a process that dies.
#include <gtest/gtest.h>

#include <cstdlib>

#include "zeus/device/sim/gpu_core.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus::sim {
namespace {

using namespace zeus::literals;
using namespace std::chrono_literals;
using testing::Draw;
using testing::Model;

bool EverybodyLives(int) { return true; }
bool NobodyLives(int) { return false; }
bool NobodyMayBeAsked(int) { std::abort(); }

TEST(GpuCoreProcessTest, TheLoadOfADeadProcessEndsWhenItsHeartbeatIsOverdue) {
  GpuCore core(Model("V100"), 1, 0);
  LoadSpec spec = Draw(200_W);
  spec.pid = 42;
  const auto id = core.AttachLoad(spec);
  ASSERT_TRUE(id.ok());
  core.AdvanceTo(10s);
  core.Heartbeat(id.value());
  core.ReapLoads(NobodyLives, 60s);
  core.AdvanceTo(10.9s);
  EXPECT_EQ(core.processes().size(), 1U);
  core.AdvanceTo(11s);
  EXPECT_TRUE(core.processes().empty());
}

TEST(GpuCoreProcessTest, TheLoadOfADeadProcessDoesNotEndInThePast) {
  GpuCore core(Model("V100"), 1, 0);
  LoadSpec spec = Draw(200_W);
  spec.pid = 42;
  ASSERT_TRUE(core.AttachLoad(spec).ok());
  core.AdvanceTo(60s);
  const Joules drawn = core.exact_energy();
  core.ReapLoads(NobodyLives, 70s);
  core.AdvanceTo(70s);
  EXPECT_TRUE(core.processes().empty());
  EXPECT_GE(core.exact_energy(), drawn);
  EXPECT_LT(core.exact_energy() - drawn, 35_W * 10s);
}

TEST(GpuCoreProcessTest, ALivingProcessKeepsItsLoadHoweverLateItsHeartbeat) {
  GpuCore core(Model("V100"), 1, 0);
  LoadSpec spec = Draw(200_W);
  spec.pid = 42;
  ASSERT_TRUE(core.AttachLoad(spec).ok());
  for (Seconds time(1); time < Seconds(1000); time *= 2.0) {
    core.ReapLoads(EverybodyLives, time);
    core.AdvanceTo(time);
  }
  EXPECT_EQ(core.processes().size(), 1U);
  EXPECT_GT(core.exact_power(), 190_W);
}

TEST(GpuCoreProcessTest, NobodyIsAskedAboutAProcessThatWasJustSeen) {
  GpuCore core(Model("V100"), 1, 0);
  LoadSpec spec = Draw(200_W);
  spec.pid = 42;
  ASSERT_TRUE(core.AttachLoad(spec).ok());
  core.ReapLoads(NobodyMayBeAsked, 500ms);
  EXPECT_EQ(core.processes().size(), 1U);
}

}  // namespace
}  // namespace zeus::sim
