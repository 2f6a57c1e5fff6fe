// Monitors of several processes that measure one device: their parts add up to its energy.

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "zeus/base/testing/scoped_variable.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/monitor/own_share.h"
#include "zeus/monitor/sharing/shared_activity_board.h"
#include "zeus/monitor/testing/scripted_meter.h"

namespace zeus {
namespace shared_energy_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using zeus::testing::ScriptedMeter;

class SharedEnergyTest : public ::testing::Test {
 protected:
  // The energy that one process alone would have.
  EnergyMonitor& AddProcess(ActivityGroup group = {}) {
    meters_.push_back(std::make_unique<ScriptedMeter>(
        clock_, ScriptedMeter::Sensor{.counter_period = 100ms, .phase = 37ms}));
    meters_.back()->SetPower(TimePoint(), 200_W);
    EnergyMonitor::Options options;
    options.board =
        SharedActivityBoard::Open(directory_.path() / "activity", {"GPU-a"}, clock_, group).value();
    monitors_.push_back(std::make_unique<EnergyMonitor>(
        clock_, std::vector<MonitoredDevice>{{.meter = meters_.back().get()}}, std::move(options)));
    return *monitors_.back();
  }

  // All processes record meanwhile.
  void Run(Seconds time) {
    const TimePoint end = clock_.Now() + time;
    while (clock_.Now() < end) {
      for (const auto& monitor : monitors_) monitor->Step();
      clock_.Advance(Seconds(0.005));
    }
  }

  static Joules Part(EnergyMonitor& monitor, WindowId id) {
    const auto result = monitor.RefinedResult(id);
    EXPECT_TRUE(result.ok()) << result.error().message;
    return result.ok() ? result.value().Sum().attributed : Joules(0);
  }

  zeus::testing::TemporaryDirectory directory_;
  VirtualClock clock_;
  std::vector<std::unique_ptr<ScriptedMeter>> meters_;
  std::vector<std::unique_ptr<EnergyMonitor>> monitors_;
};

TEST_F(SharedEnergyTest, EightProcessesGetAnEighthEach) {
  for (int i = 0; i < 8; ++i) AddProcess();
  Run(1s);
  std::vector<WindowId> windows;
  for (const auto& monitor : monitors_) windows.push_back(monitor->BeginWindow("rank").value());
  Run(10s);
  for (const auto& monitor : monitors_) ASSERT_TRUE(monitor->EndWindow("rank").ok());
  Run(1s);

  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(Part(*monitors_[i], windows[i]).value(), 2000 / 8.0, 1) << i;
}

// Windows inside windows do not make a process heavier.
TEST_F(SharedEnergyTest, NestedWindowsCountOnce) {
  EnergyMonitor& nesting = AddProcess();
  EnergyMonitor& plain = AddProcess();
  Run(1s);
  const WindowId epoch = nesting.BeginWindow("epoch").value();
  const WindowId step = nesting.BeginWindow("step").value();
  const WindowId other = plain.BeginWindow("other").value();
  Run(10s);
  ASSERT_TRUE(nesting.EndWindow("step").ok());
  ASSERT_TRUE(nesting.EndWindow("epoch").ok());
  ASSERT_TRUE(plain.EndWindow("other").ok());
  Run(1s);

  EXPECT_NEAR(Part(nesting, step).value(), 1000, 2);
  EXPECT_NEAR(Part(nesting, epoch).value(), 0, 2);
  EXPECT_NEAR(Part(plain, other).value(), 1000, 2);
}

TEST_F(SharedEnergyTest, PartsFollowWhoComesAndGoes) {
  EnergyMonitor& first = AddProcess();
  EnergyMonitor& second = AddProcess();
  Run(1s);
  const WindowId whole = first.BeginWindow("whole").value();
  Run(5s);
  const WindowId half = second.BeginWindow("half", {.weight = 3}).value();
  Run(5s);
  ASSERT_TRUE(second.EndWindow("half").ok());
  ASSERT_TRUE(first.EndWindow("whole").ok());
  Run(1s);

  EXPECT_NEAR(Part(second, half).value(), 750, 2);
  EXPECT_NEAR(Part(first, whole).value(), 1250, 2);
  EXPECT_NEAR(first.Accounts(0).others.value(), 750, 2);
}

TEST_F(SharedEnergyTest, AProcessKnowsItsPartWhileItsWindowIsOpen) {
  EnergyMonitor& first = AddProcess();
  EnergyMonitor& second = AddProcess();
  Run(1s);
  ASSERT_TRUE(second.BeginWindow("before").ok());
  Run(2s);
  ASSERT_TRUE(second.EndWindow("before").ok());
  ASSERT_TRUE(first.BeginWindow("run").ok());
  OwnShare share(first, {0});
  share.Begin();
  Run(5s);
  // A process that has just left is not taken for company.
  EXPECT_NEAR(share.OwnPart(), 1, 1e-9);
  EXPECT_FALSE(share.shared());
  ASSERT_TRUE(second.BeginWindow("beside").ok());
  // Windows inside the run do not matter.
  ASSERT_TRUE(first.BeginWindow("epoch").ok());
  Run(5s);
  EXPECT_NEAR(share.OwnPart(), 0.75, 0.02);
  EXPECT_TRUE(share.shared());
}

TEST_F(SharedEnergyTest, AHostAndItsCommandMeasureTheSameWork) {
  EnergyMonitor& host = AddProcess({.id = 7, .host = true});
  EnergyMonitor& command = AddProcess({.id = 7});
  EnergyMonitor& stranger = AddProcess();
  Run(1s);
  OwnShare of_host(host, {0});
  OwnShare of_command(command, {0});
  OwnShare of_stranger(stranger, {0});
  ASSERT_TRUE(host.BeginWindow("trial").ok());
  ASSERT_TRUE(command.BeginWindow("epoch").ok());
  of_host.Begin();
  of_command.Begin();
  Run(2s);
  EXPECT_NEAR(of_host.OwnPart(), 1, 1e-9);
  EXPECT_NEAR(of_command.OwnPart(), 1, 1e-9);
  ASSERT_TRUE(stranger.BeginWindow("other").ok());
  of_stranger.Begin();
  Run(20s);
  EXPECT_NEAR(of_stranger.OwnPart(), 0.5, 0.02);
  EXPECT_NEAR(of_host.OwnPart(), (2 + 10) / 22.0, 0.02);
  EXPECT_NEAR(of_command.OwnPart(), (2 + 10) / 22.0, 0.02);
}

TEST(ActivityGroupTest, IsReadFromTheEnvironment) {
  EXPECT_EQ(ActivityGroup::Parse("host:1f").number(), 0x1f * 2 + 1U);
  EXPECT_EQ(ActivityGroup::Parse("1f").number(), 0x1f * 2U);
  for (const char* const wrong : {"", "host:", "x", "1f ", "-1", "ffffffffffffffff"})
    EXPECT_EQ(ActivityGroup::Parse(wrong).id, 0U) << wrong;
  const zeus::testing::ScopedVariable variable("ZEUS_ACTIVITY_GROUP", "1f");
  ActivityGroup::BecomeHost();
  EXPECT_EQ(ActivityGroup::FromEnvironment().number(), 0x1f * 2 + 1U);
  EXPECT_EQ(ActivityGroup::VariableOfMembers(), "ZEUS_ACTIVITY_GROUP=1f");
}

TEST(ActivityGroupTest, SessionsOfOneProgramHaveGroupsOfTheirOwn) {
  const ActivityGroup one = ActivityGroup::NewHost();
  const ActivityGroup other = ActivityGroup::NewHost();
  EXPECT_TRUE(one.host);
  EXPECT_NE(one.id, other.id);
  EXPECT_EQ(ActivityGroup::Parse(one.ToText()).number(), one.number());
  EXPECT_EQ(ActivityGroup::FromEnvironment().id, 0U);
  {
    const ScopedActivityGroup scope(one);
    EXPECT_EQ(ActivityGroup::Current().number(), one.number());
    std::thread([] { EXPECT_EQ(ActivityGroup::Current().id, 0U); }).join();
  }
  EXPECT_EQ(ActivityGroup::Current().id, 0U);
}

}  // namespace shared_energy_test
}  // namespace zeus
