// A program with a DeviceDesk is killed at each of its steps: before and after each change of a
// device, and before and after each change of a file of the journal. Whatever it leaves, the repair
// finds every GPU's baseline in the journal. DESK_KILLS=1000 makes a soak of the random part;
// DESK_SEED repeats a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "zeus/base/testing/places.h"
#include "zeus/base/testing/scoped_variable.h"
#include "zeus/daemon/testing/desk_world.h"
#include "zeus/device/knobs/knob_repair.h"
#include "zeus/device/sim/testing/driver_node.h"

namespace {

std::atomic<int> steps{0};
std::atomic<int> kill_at{0};  // 0: the program lives.
std::atomic<bool> counting{false};

void Step() {
  if (counting && ++steps == kill_at) ::kill(::getpid(), SIGKILL);
}

}  // namespace

// In the place of the C library's: the journal changes its files with these.
extern "C" int rename(const char* from, const char* to) noexcept {
  Step();
  const long result = ::syscall(SYS_rename, from, to);
  Step();
  return static_cast<int>(result);
}
extern "C" int remove(const char* path) noexcept {
  Step();
  const long result = ::syscall(SYS_unlink, path);
  Step();
  return static_cast<int>(result);
}

namespace zeus::daemon {
namespace desk_kill_test {

using namespace zeus::literals;
using testing::AtMost;
using testing::ClaimOf;
using testing::Exactly;
using testing::FakeClaims;
using wire::LeaseKnob;

constexpr Watts kFound{300};  // An administrator's cap on boards of 400 W.
constexpr unsigned kGpus = 2;
constexpr Seconds kTimeout{60};  // Reached only by a failure.

Node DiscoverGpus(Clock& clock) {
  Node node = Discover(RealSurroundings(clock)).value();
  node.cpus.clear();  // Those of this machine are real.
  return node;
}

// Leases that come and go, on all knobs.
class Daemon {
 public:
  Daemon(const std::filesystem::path& folder, const Node& node)
      : journal_(clock_, folder), node_(node), desk_(clock_, node, journal_, nullptr, Options()) {}

  bool Run() {
    claims_.Set(Key(1, LeaseKnob::kGpuPowerLimit), {AtMost("earlier", 250_W)});
    if (!desk_.Start(claims_).ok() || node_.gpus.size() != kGpus) return false;
    const auto clocks = node_.gpus[0]->SupportedClocks(ClockDomain::kGraphics).value();
    const auto memory = node_.gpus[0]->SupportedClocks(ClockDomain::kMemory).value();
    const auto limit = LeaseKnob::kGpuPowerLimit;
    const auto clock = LeaseKnob::kGraphicsClock;
    return Settle(0, limit, {Exactly("a", 150_W)}) && Settle(0, limit, {Exactly("a", 200_W)}) &&
           Settle(0, clock, {Exactly("a", clocks[20])}) &&
           Settle(0, clock, {ClaimOf("a", wire::InRange{clocks[5], clocks[30]})}) &&
           Settle(0, limit, {}) && Settle(1, LeaseKnob::kMemoryClock, {Exactly("b", memory[0])}) &&
           Settle(1, LeaseKnob::kPersistence, {ClaimOf("b", wire::SwitchedOn{})}) &&
           Settle(1, limit, {AtMost("earlier", 250_W), AtMost("b", 175_W)}) &&
           Settle(0, limit, {Exactly("c", 175_W)}) && Settle(0, clock, {}) &&
           Settle(0, limit, {}) && Settle(1, LeaseKnob::kMemoryClock, {}) && Settle(1, limit, {}) &&
           Settle(1, LeaseKnob::kPersistence, {}) && desk_.WaitUntilReleased(kTimeout);
  }

 private:
  static DeviceDesk::Options Options() {
    DeviceDesk::Options options;
    options.may_raise = false;
    options.wrap = [](std::unique_ptr<KnobActuator> actuator) {
      return std::make_unique<testing::SteppedActuator>(std::move(actuator),
                                                        [](const char*, const KnobDevice&) {
                                                          Step();
                                                          return Ok();
                                                        });
    };
    return options;
  }
  wire::KnobKey Key(std::size_t gpu, LeaseKnob knob) const {
    return {.device = node_.gpus.at(gpu)->identity().uuid, .knob = knob};
  }
  bool Settle(std::size_t gpu, LeaseKnob knob, std::vector<Claim> claims) {
    claims_.Set(Key(gpu, knob), std::move(claims));
    desk_.Wake(Key(gpu, knob));
    return desk_.WaitUntilSettled(Key(gpu, knob), kTimeout) &&
           !desk_.Latest(Key(gpu, knob))->trouble;
  }

  SystemClock clock_;
  KnobJournal journal_;
  const Node& node_;
  FakeClaims claims_;
  DeviceDesk desk_;
};

class DeskKillTest : public ::testing::Test {
 protected:
  DeskKillTest() {
    for (unsigned gpu = 0; gpu < kGpus; ++gpu) {
      driver_.SetPowerLimit(kFound, gpu);
      driver_.Attach(sim::testing::Draw(150_W), gpu);  // A busy GPU says when its clock is locked.
    }
    node_ = DiscoverGpus(clock_);
    for (const auto& gpu : node_.gpus) EXPECT_TRUE(gpu->SetPersistence(Persistence::kOff).ok());
  }

  // Runs the daemon in a child that is killed at `step`. Returns the number of its steps when it
  // was not killed, -1 when it was.
  int RunUntil(int step) const {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe(pipe.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      steps = 0;
      kill_at = step;
      counting = true;
      SystemClock clock;
      const Node node = DiscoverGpus(clock);
      bool done = Daemon(folder_.path(), node).Run();
      const int count = steps;
      done = done && ::write(pipe[1], &count, sizeof count) == sizeof count;
      ::_exit(done ? 0 : 1);
    }
    ::close(pipe[1]);
    int status = 0;
    ::waitpid(child, &status, 0);
    int count = -1;
    const bool told = ::read(pipe[0], &count, sizeof count) == sizeof count;
    ::close(pipe[0]);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    EXPECT_TRUE(killed || (told && WIFEXITED(status) && WEXITSTATUS(status) == 0)) << status;
    return killed ? -1 : count;
  }

  void ExpectNothingRaised() const {
    for (unsigned gpu = 0; gpu < kGpus; ++gpu)
      EXPECT_LE(driver_.Snapshot(gpu).power_limit().requested, kFound);
  }
  bool AtBaseline() const {
    bool all = true;
    for (unsigned gpu = 0; gpu < kGpus; ++gpu) {
      const sim::GpuCore core = driver_.Snapshot(gpu);
      all = all && core.power_limit().requested == kFound && !core.throttle().locked_clock &&
            node_.gpus[gpu]->CurrentPersistence().value() == Persistence::kOff;
    }
    return all;
  }
  void RepairAndCheck() {
    ExpectNothingRaised();
    changed_ += AtBaseline() ? 0 : 1;
    KnobJournal journal(clock_, folder_.path());
    const auto repairs = RepairKnobs(journal, node_);
    ASSERT_TRUE(repairs.ok());
    for (const KnobRepair& repair : repairs.value())
      EXPECT_NE(repair.outcome, KnobRepair::Outcome::kFailed) << ToText(repair);
    driver_.Advance(Seconds(1));  // A GPU says for a moment that its clock is still locked.
    for (unsigned gpu = 0; gpu < kGpus; ++gpu) {
      EXPECT_EQ(driver_.Snapshot(gpu).power_limit().requested, kFound) << gpu;
      EXPECT_FALSE(driver_.Snapshot(gpu).throttle().locked_clock) << gpu;
      EXPECT_EQ(node_.gpus[gpu]->CurrentPersistence().value(), Persistence::kOff) << gpu;
    }
    EXPECT_TRUE(journal.List().value().empty());
    EXPECT_TRUE(journal.Damaged().value().empty());
  }

  SystemClock clock_;
  zeus::testing::TemporaryDirectory folder_;
  zeus::testing::ScopedVariable library_{"ZEUS_NVML_LIBRARY", zeus::testing::SimulatedDriver()};
  sim::testing::DriverNode driver_{"2xA100"};
  Node node_;
  int changed_ = 0;  // Kills that left a GPU changed.
};

TEST_F(DeskKillTest, AKillAtEachStepLeavesWhatTheRepairPutsBack) {
  const int all = RunUntil(0);
  ASSERT_GT(all, 50);
  driver_.Advance(Seconds(1));
  EXPECT_TRUE(AtBaseline()) << "a daemon that is not killed leaves nothing";
  int kills = 0;
  for (int step = 1; step <= all; ++step) {
    SCOPED_TRACE("step " + std::to_string(step) + " of " + std::to_string(all));
    kills += RunUntil(step) < 0 ? 1 : 0;
    RepairAndCheck();
    if (HasFailure()) return;
  }
  EXPECT_GT(kills, all / 2);
  EXPECT_GT(changed_, all / 4) << "kills that leave nothing show nothing";
  std::printf("%d steps, %d kills, %d of them left a GPU changed\n", all, kills, changed_);
}

TEST_F(DeskKillTest, DaemonsThatAreKilledWhileTheyRepairLoseNothing) {
  const char* const rounds = std::getenv("DESK_KILLS");
  const char* const chosen = std::getenv("DESK_SEED");
  const auto seed =
      static_cast<unsigned>(chosen != nullptr ? std::atol(chosen) : std::random_device()());
  std::printf("DESK_SEED=%u\n", seed);
  std::mt19937 random(seed);
  const int all = RunUntil(0);
  for (int round = 0; round < (rounds != nullptr ? std::atoi(rounds) : 10); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    // Kills in a row, each while the leftovers of the one before are repaired.
    for (int kill = 0; kill < 4; ++kill)
      RunUntil(std::uniform_int_distribution(1, kill == 0 ? all : 20)(random));
    RepairAndCheck();
    if (HasFailure()) return;
  }
}

}  // namespace desk_kill_test
}  // namespace zeus::daemon
