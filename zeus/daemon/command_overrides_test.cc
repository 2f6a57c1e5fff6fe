#include "zeus/daemon/command_overrides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/process/run_command.h"

namespace zeus::daemon {
namespace command_overrides_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

CommandOverrides Parsed(const std::string& toml) {
  auto parsed = CommandOverrides::Parse(toml, "o.toml");
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  return std::move(parsed).value();
}

std::string Complaint(const std::string& toml) {
  const auto parsed = CommandOverrides::Parse(toml, "o.toml");
  return parsed.ok() ? "" : parsed.error().message;
}

TEST(SplitCommandTest, BlanksSeparateAndMarksKeepTogether) {
  EXPECT_THAT(SplitCommand("  a  'b c' d\"e f\"g '' ").value(),
              ElementsAre("a", "b c", "de fg", ""));
  EXPECT_FALSE(SplitCommand("a 'b").ok());
}

TEST(CommandOverridesTest, AFileThatIsWrongIsRefusedWithItsLine) {
  EXPECT_THAT(Complaint("[set_power]\ncommands = [\"a\"]"), HasSubstr("o.toml:1: \"set_power\""));
  EXPECT_THAT(Complaint("[set_power_limit]"), HasSubstr("needs commands"));
  EXPECT_THAT(Complaint("[set_power_limit]\ncommands = []"), HasSubstr("o.toml:2: commands must"));
  EXPECT_THAT(Complaint("[set_power_limit]\ncommands = [\"a {enabled}\"]"),
              HasSubstr("{gpu_id}, {power_limit_mw}, {power_limit_w}"));
  EXPECT_THAT(Complaint("[set_power_limit]\ncommands = [\"a\"]\ntimeout_s = 0"),
              HasSubstr("timeout_s must be more than 0"));
  EXPECT_THAT(Complaint("[set_power_limit]\ncommands = [\"a\"]\nerror_pattern = \"(\""),
              HasSubstr("no regular expression"));
  EXPECT_THAT(Complaint("[set_power_limit]\ncommands = [\"a\"]\nshell = true"),
              HasSubstr("\"shell\" is no key"));
  EXPECT_THAT(Complaint("[set_power_limit]\ncommands = [\"a 'b\"]"), HasSubstr("has no end"));
  EXPECT_THAT(Complaint("= 1"), HasSubstr("o.toml:1: "));
}

TEST(RunCommandTest, OutputAndEndAreKnown) {
  const auto done = RunCommand({"sh", "-c", "echo out; echo err >&2; exit 3"}, 60s);
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done.value().output, "out\nerr\n");
  EXPECT_EQ(WEXITSTATUS(done.value().status), 3);
  EXPECT_EQ(RunCommand({"/nonexistent/program"}, 60s).error().code, ErrorCode::kNotFound);
}

TEST(RunCommandTest, ACommandThatTakesTooLongIsKilledWithAllThatItStarted) {
  const auto done = RunCommand({"sh", "-c", "sleep 600 & echo begun; wait"}, Seconds(0.3));
  ASSERT_TRUE(done.ok());
  EXPECT_TRUE(done.value().timed_out);
  EXPECT_EQ(done.value().output, "begun\n");
}

TEST(RunCommandTest, OutputIsBounded) {
  const auto done = RunCommand({"sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x"}, 60s);
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done.value().output.size(), std::size_t{64} << 10);
}

// Commands append what they are given to a file; the GPU below is a simulated one.
class CommandedGpuTest : public ::testing::Test {
 protected:
  std::unique_ptr<Gpu> Commanded(const std::string& toml) {
    std::vector<std::unique_ptr<Gpu>> gpus;
    gpus.push_back(std::make_unique<sim::SimulatedGpu>(clock_, *sim::FindGpuModel("V100").value()));
    SetByCommands(gpus, std::make_shared<const CommandOverrides>(Parsed(toml)));
    return std::move(gpus.front());
  }
  std::string Echo(const std::string& words) const {
    return "sh -c 'echo " + words + " >> " + log() + "'";
  }
  std::string log() const { return folder_.path() / "log"; }
  std::string Log() const { return ReadSmallFile(log()).value(); }

  zeus::testing::TemporaryDirectory folder_;
  VirtualClock clock_;
};

TEST_F(CommandedGpuTest, ClocksAndPersistenceAreSetByCommands) {
  const auto gpu =
      Commanded("[set_gpu_locked_clocks]\ncommands = [\"" +
                Echo("lock {gpu_id} {min_clock_mhz} {max_clock_mhz}") + "\", \"" + Echo("again") +
                "\"]\n[reset_gpu_locked_clocks]\ncommands = [\"" + Echo("unlock {gpu_id}") +
                "\"]\n[set_persistence_mode]\ncommands = [\"" + Echo("keep {enabled}") + "\"]\n");
  const Hertz before = gpu->CurrentClock(ClockDomain::kGraphics).value();
  EXPECT_TRUE(gpu->LockClockWithoutJournal(ClockDomain::kGraphics,
                                           {.min = Hertz(600e6), .max = Hertz(900e6)})
                  .ok());
  EXPECT_TRUE(gpu->ResetClock(ClockDomain::kGraphics).ok());
  EXPECT_TRUE(gpu->SetPersistence(Persistence::kOff).ok());
  EXPECT_EQ(Log(), "lock 0 600 900\nagain\nunlock 0\nkeep 0\n");
  EXPECT_EQ(gpu->CurrentClock(ClockDomain::kGraphics).value(), before);
}

TEST_F(CommandedGpuTest, ALimitThatTheCommandDidNotSetIsAnError) {
  const auto gpu = Commanded("[set_power_limit]\ncommands = [\"" +
                             Echo("{power_limit_mw} {power_limit_w}") + "\"]\n");
  const PowerLimit limit = gpu->CurrentPowerLimit().value();
  const auto set = gpu->SetPowerLimitWithoutJournal(limit.range.min + Watts(0.5));
  ASSERT_FALSE(set.ok());
  EXPECT_THAT(set.error().message, HasSubstr("ended without an error, but the limit of"));
  EXPECT_EQ(gpu->SetPowerLimitWithoutJournal(limit.range.max + Watts(1)).error().code,
            ErrorCode::kInvalidArgument);
  // The limit is what it was, so a command that changes nothing is right.
  EXPECT_TRUE(gpu->SetPowerLimitWithoutJournal(limit.requested).ok());
}

TEST_F(CommandedGpuTest, TheFirstCommandThatFailsEndsTheTable) {
  const auto gpu = Commanded("[set_persistence_mode]\ncommands = [\"sh -c 'echo no; exit 7'\", \"" +
                             Echo("never") + "\"]\n");
  const Status set = gpu->SetPersistence(Persistence::kOn);
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().message, "set_persistence_mode: \"sh\" ended with exit code 7: no");
  EXPECT_FALSE(std::filesystem::exists(log()));
}

TEST_F(CommandedGpuTest, OutputThatMatchesThePatternIsAnError) {
  const auto gpu = Commanded(
      "[set_persistence_mode]\ncommands = [\"echo all is well\", \"echo Error: not allowed\"]\n"
      "error_pattern = \"(?i)error:\"\n");
  EXPECT_THAT(gpu->SetPersistence(Persistence::kOn).error().message,
              HasSubstr("printed an error: Error: not allowed"));
}

TEST_F(CommandedGpuTest, ACommandThatUnlocksBothClocksWaitsForTheOther) {
  const auto gpu = Commanded(
      "[set_gpu_locked_clocks]\ncommands = [\"true\"]\n"
      "[set_mem_locked_clocks]\ncommands = [\"true\"]\n"
      "[reset_mem_locked_clocks]\ncommands = [\"true\"]\n"
      "[reset_locked_clocks]\ncommands = [\"" +
      Echo("both") + "\"]\n");
  const ClockRange range{.min = Hertz(600e6), .max = Hertz(900e6)};
  ASSERT_TRUE(gpu->LockClockWithoutJournal(ClockDomain::kGraphics, range).ok());
  ASSERT_TRUE(gpu->LockClockWithoutJournal(ClockDomain::kMemory, range).ok());
  EXPECT_THAT(gpu->ResetClock(ClockDomain::kGraphics).error().message,
              HasSubstr("would unlock the memory clock"));
  ASSERT_TRUE(gpu->ResetClock(ClockDomain::kMemory).ok());
  EXPECT_TRUE(gpu->ResetClock(ClockDomain::kGraphics).ok());
  EXPECT_EQ(Log(), "both\n");
}

}  // namespace command_overrides_test
}  // namespace zeus::daemon
