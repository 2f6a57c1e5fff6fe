#include "zeus/device/knobs/guarded_knob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include "zeus/base/testing/sanitized.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/device/knobs/device_knob.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus {
namespace guarded_knob_test {

using namespace zeus::literals;

void Throw() { throw std::runtime_error("out of memory"); }

// A process with a guarded and journalled knob. That the journal is empty after its end shows that
// the knob was put back: its GPU went with it.
class KnobGuardTest : public ::testing::Test {
 protected:
  int ExitStatus(const std::function<void(KnobGuard&)>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      // A static, so that it is still there when exit() asks for it.
      static auto knob = DeviceKnob::Of(KnobKind::kGpuPowerLimit, gpu_, journal_).value();
      static KnobGuard guard(*knob, [this] { folder_.AddFile("afterwards", ""); });
      if (!guard.Set(150_W).ok()) ::_exit(99);
      body(guard);
      ::_exit(98);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }
  bool AllIsBack() { return journal_.List().value().empty(); }
  bool CalledAfterwards() { return std::filesystem::exists(folder_.path() / "afterwards"); }

  SystemClock clock_;
  zeus::testing::TemporaryDirectory folder_;
  KnobJournal journal_{clock_, folder_.path()};
  sim::SimulatedGpu gpu_{clock_, sim::testing::Model("V100")};
};

TEST_F(KnobGuardTest, ASignalRestoresAndEndsTheProgram) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const int status = ExitStatus([signal](KnobGuard&) {
      ::raise(signal);
      for (;;) ::pause();
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal);
    EXPECT_TRUE(AllIsBack());
    EXPECT_TRUE(CalledAfterwards());
  }
}

TEST_F(KnobGuardTest, NothingIsSetWhileTheProgramEnds) {
  const int status = ExitStatus([](KnobGuard& guard) {
    ::raise(SIGTERM);
    for (int i = 0;; ++i) (void)guard.Set(Watts(150 + i % 50));
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  EXPECT_TRUE(AllIsBack());
}

TEST_F(KnobGuardTest, ExitRestores) {
  const int status = ExitStatus([](KnobGuard&) { std::exit(7); });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  EXPECT_TRUE(AllIsBack());
  EXPECT_FALSE(CalledAfterwards());
}

TEST_F(KnobGuardTest, AnExceptionThatNobodyCatchesRestores) {
  const int status = ExitStatus([](KnobGuard&) { []() noexcept { Throw(); }(); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  EXPECT_TRUE(AllIsBack());
}

TEST_F(KnobGuardTest, WithoutAnyOfThatTheJournalKnows) {
  EXPECT_TRUE(WIFEXITED(ExitStatus([](KnobGuard&) {})));
  ASSERT_EQ(journal_.List().value().size(), 1U);
  EXPECT_EQ(journal_.List().value()[0].standing, KnobJournal::Standing::kLeft);
}

sem_t handled;

TEST_F(KnobGuardTest, AProgramWhoseHandlerGoesOnKeepsTheRestoredKnob) {
  ::sem_init(&handled, 0, 0);
  ::signal(SIGTERM, [](int) { ::sem_post(&handled); });
  const int handled_status = ExitStatus([this](KnobGuard& guard) {
    ::raise(SIGTERM);
    while (::sem_wait(&handled) != 0) continue;
    const bool closed = guard.Set(160_W).error().code == ErrorCode::kUnavailable;
    ::_exit(closed && gpu_.CurrentPowerLimit().value().requested == 250_W ? 0 : 1);
  });
  ::signal(SIGTERM, SIG_DFL);
  EXPECT_TRUE(WIFEXITED(handled_status) && WEXITSTATUS(handled_status) == 0);
}

TEST_F(KnobGuardTest, AForkedChildLeavesEverythingToItsParent) {
  const int status = ExitStatus([this](KnobGuard& guard) {
    const auto still_set = [this] {
      return gpu_.CurrentPowerLimit().value().requested == 150_W && !AllIsBack();
    };
    const pid_t child = ::fork();
    if (child == 0) std::exit(guard.Restore().ok() && still_set() ? 0 : 1);
    int ended = 0;
    ::waitpid(child, &ended, 0);
    ::_exit(ended == 0 && still_set() ? 0 : 1);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(KnobGuardTest, AForkedChildGuardsItsOwnKnobs) {
  if (!zeus::testing::kForksBesideThreads)
    GTEST_SKIP() << "the thread sanitizer lets a forked child start no threads";
  sim::SimulatedGpu other(clock_, sim::testing::Model("V100"));
  const auto knob = DeviceKnob::WithoutJournal(KnobKind::kGpuPowerLimit, other).value();
  const KnobGuard guard_of_parent(*knob);  // Its thread is not there in the child.
  const int status = ExitStatus([](KnobGuard&) {
    ::raise(SIGTERM);
    for (;;) ::pause();
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  EXPECT_TRUE(AllIsBack());
}

TEST_F(KnobGuardTest, DestructionRestores) {
  const auto knob = DeviceKnob::WithoutJournal(KnobKind::kGpuPowerLimit, gpu_).value();
  {
    KnobGuard guard(*knob);
    ASSERT_TRUE(guard.Set(150_W).ok());
  }
  EXPECT_EQ(gpu_.CurrentPowerLimit().value().requested, 250_W);
}

// A knob whose program is sent SIGTERM just before it is put back, which then takes its time.
class SignalledKnob final : public Knob {
 public:
  SignalledKnob(Knob& knob, Clock& clock) : knob_(knob), clock_(clock) {}

  const std::string& name() const override { return knob_.name(); }
  KnobKind kind() const override { return knob_.kind(); }
  Result<std::vector<Setting>> Settings(const Setting& stride) override {
    return knob_.Settings(stride);
  }
  Result<Setting> Current() override { return knob_.Current(); }
  Watts max_power() const override { return knob_.max_power(); }
  Status Set(const Setting& setting) override { return knob_.Set(setting); }
  Status CheckInForce(const Setting& setting) override { return knob_.CheckInForce(setting); }
  Status Restore() override {
    ::kill(::getpid(), SIGTERM);
    clock_.SleepFor(Seconds(0.3));  // Enough for the signal to end a program that does not wait.
    return knob_.Restore();
  }

 private:
  Knob& knob_;
  Clock& clock_;
};

TEST_F(KnobGuardTest, ASignalWaitsForAKnobThatIsJustPutBack) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto knob = DeviceKnob::Of(KnobKind::kGpuPowerLimit, gpu_, journal_).value();
    SignalledKnob signalled(*knob, clock_);
    {
      KnobGuard guard(signalled);
      if (!guard.Set(150_W).ok()) ::_exit(99);
    }
    for (;;) ::pause();
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  EXPECT_TRUE(AllIsBack());
}

using ::testing::HasSubstr;

class ScopedPowerLimitTest : public ::testing::Test {
 protected:
  Watts Requested() { return gpu_.CurrentPowerLimit().value().requested; }

  VirtualClock clock_;
  sim::SimulatedGpu gpu_{clock_, sim::testing::Model("A100")};
};

TEST_F(ScopedPowerLimitTest, TheLimitBeforeComesBackNotTheDefault) {
  ASSERT_TRUE(gpu_.SetPowerLimitWithoutJournal(300_W).ok());
  {
    const auto scope = ScopedPowerLimit::Set(gpu_, 150_W);
    ASSERT_TRUE(scope.ok());
    EXPECT_EQ(Requested(), 150_W);
  }
  EXPECT_EQ(Requested(), 300_W);
}

TEST_F(ScopedPowerLimitTest, RestoringEarlyIsDoneOnce) {
  {
    auto scope = ScopedPowerLimit::Set(gpu_, 150_W).value();
    EXPECT_TRUE(scope.Restore().ok());
    EXPECT_EQ(Requested(), 400_W);
    ASSERT_TRUE(gpu_.SetPowerLimitWithoutJournal(200_W).ok());
    EXPECT_TRUE(scope.Restore().ok());
  }
  EXPECT_EQ(Requested(), 200_W);
}

TEST_F(ScopedPowerLimitTest, ALimitThatCannotBeRestoredSaysWhy) {
  auto scope = ScopedPowerLimit::Set(gpu_, 150_W).value();
  gpu_.InjectFault({.kind = sim::FaultKind::kNoPermission});
  const Status restored = scope.Restore();

  ASSERT_FALSE(restored.ok());
  EXPECT_EQ(restored.error().code, ErrorCode::kPermissionDenied);
  EXPECT_THAT(restored.error().message, HasSubstr("restore the power limit of gpu:0"));
}

TEST_F(ScopedPowerLimitTest, AMovedScopeRestoresOnce) {
  {
    auto scope = ScopedPowerLimit::Set(gpu_, 150_W).value();
    const ScopedPowerLimit moved = std::move(scope);
    EXPECT_EQ(Requested(), 150_W);
  }
  EXPECT_EQ(Requested(), 400_W);
}

}  // namespace guarded_knob_test
}  // namespace zeus
