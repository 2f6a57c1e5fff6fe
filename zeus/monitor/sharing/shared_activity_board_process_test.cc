// Boards of real processes: fork, kill -9, and what becomes of their slots.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "zeus/base/testing/child_process.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/monitor/sharing/shared_activity_board.h"

namespace zeus {
namespace shared_activity_board_process_test {

using zeus::testing::HoldsInAChild;

TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

// Time stands still, but who waits for another process really waits.
class FrozenClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(); }
  WallTime WallNow() const override { return WallTime(); }
  void SleepUntil(TimePoint /*deadline*/) override { SystemClock().SleepFor(Seconds(0.001)); }
};

class SharedActivityBoardProcessTest : public ::testing::Test {
 protected:
  std::unique_ptr<SharedActivityBoard> Open() { return Open(clock_); }
  std::unique_ptr<SharedActivityBoard> Open(Clock& clock) {
    return SharedActivityBoard::Open(path_, {"GPU-a"}, clock).value();
  }

  // The others' weight after everything up to `now` was told.
  static double WeightAt(SharedActivityBoard& board, double now, double before) {
    for (const auto& change : board.Poll(At(now))) before = change.weight;
    return before;
  }

  zeus::testing::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_.path() / "activity";
  VirtualClock clock_;
};

TEST_F(SharedActivityBoardProcessTest, AnotherProcessIsHeard) {
  const auto board = Open();
  ASSERT_TRUE(HoldsInAChild([&] {
    const auto own = Open();
    own->Announce(At(1), 0, 1);
    own->Announce(At(2), 0, 0);
    return true;
  }));
  const auto changes = board->Poll(At(3));

  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].time, At(1));
  EXPECT_EQ(changes[1].time, At(2));
}

TEST_F(SharedActivityBoardProcessTest, AForkedChildIsSilentUntilItOpensItsOwn) {
  const auto watcher = Open();
  auto board = Open();
  board->Announce(At(1), 0, 1);
  board->Poll(At(1.1));
  ASSERT_TRUE(HoldsInAChild([&] {
    board->Announce(At(1.2), 0, 7);
    const bool silent = board->Poll(At(1.3)).empty() && watcher->Poll(At(1.3)).empty();
    board.reset();  // Must not give the parent's slot away.
    return silent;
  }));

  EXPECT_EQ(WeightAt(*watcher, 1.4, 0), 1);
  EXPECT_EQ(WeightAt(*board, 1.4, 0), 0);
  EXPECT_TRUE(HoldsInAChild([&] {
    const auto own = Open();
    return WeightAt(*own, 1.5, 0) == 1;
  }));
}

// A process that announces without end, and where it can be killed.
class Victim {
 public:
  explicit Victim(const std::function<std::unique_ptr<SharedActivityBoard>()>& open) {
    if (::pipe(ready_) != 0) ::abort();
    process_ = ::fork();
    if (process_ != 0) return;
    const auto board = open();
    board->Announce(At(1), 0, 1);
    static_cast<void>(::write(ready_[1], "x", 1));
    while (true) {
      board->Announce(At(1), 0, 2);
      board->Announce(At(1), 0, 1);
    }
  }
  ~Victim() {
    ::close(ready_[0]);
    ::close(ready_[1]);
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  bool Kill() const {
    char go = 0;
    int status = 0;
    return ::read(ready_[0], &go, 1) == 1 && ::kill(process_, SIGKILL) == 0 &&
           ::waitpid(process_, &status, 0) == process_ && WIFSIGNALED(status);
  }

 private:
  int ready_[2];
  pid_t process_;
};

TEST_F(SharedActivityBoardProcessTest, KilledProcessesNeitherBlockNorStayAndTheirSlotsAreReused) {
  constexpr int kRounds = 300;  // More than there are slots.
  const auto board = Open();
  double time = 2;
  for (int round = 0; round < kRounds; ++round) {
    const Victim victim([&] { return Open(); });
    ASSERT_TRUE(victim.Kill());
    const double while_known = WeightAt(*board, time, 0);
    ASSERT_TRUE(while_known >= 0 && while_known <= 2) << while_known;
    clock_.Advance(Seconds(5));
    board->Poll(clock_.Now());
    time = clock_.Now().time_since_epoch().count() + 2;
    ASSERT_EQ(WeightAt(*board, time, 0), 0) << round;
  }
  EXPECT_TRUE(board->Poll(At(time + 10)).empty());
}

TEST_F(SharedActivityBoardProcessTest, EightProcessesAtOnceAgreeOnTheSum) {
  constexpr int kProcesses = 8;
  FrozenClock clock;
  const auto board = Open(clock);
  std::vector<pid_t> processes;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto* own = Open(clock).release();  // Stays, as if the process went on measuring.
      for (int round = 0; round < 1000; ++round) own->Announce(At(1), 0, round % 3);
      own->Announce(At(1.5), 0, 1);
      own->Poll(At(2));
      ::_exit(0);
    }
    processes.push_back(child);
  }
  for (const pid_t process : processes) {
    int status = -1;
    ::waitpid(process, &status, 0);
    EXPECT_EQ(status, 0);
  }

  EXPECT_EQ(WeightAt(*board, 2.1, 0), kProcesses);
}

}  // namespace shared_activity_board_process_test
}  // namespace zeus
