#include "zeus/base/file_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "zeus/base/testing/child_process.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus {
namespace file_lock_test {

class FileLockTest : public ::testing::Test {
 protected:
  bool IsHeld() { return FileLock::IsHeld(file_).value(); }

  zeus::testing::TemporaryDirectory folder_;
  const std::filesystem::path file_ = folder_.path() / "a.lock";
};

TEST_F(FileLockTest, ALockHasOneHolderAndLookingTakesNothing) {
  EXPECT_FALSE(IsHeld());
  {
    const auto first = FileLock::TryTake(file_);
    ASSERT_TRUE(first.ok());
    EXPECT_TRUE(IsHeld());
    EXPECT_EQ(FileLock::TryTake(file_).error().code, ErrorCode::kUnavailable);
    EXPECT_TRUE(IsHeld());
  }
  EXPECT_FALSE(IsHeld());
  EXPECT_TRUE(FileLock::TryTake(file_).ok());
}

// A process that holds the lock and has a fork()ed child, both of which wait for their end.
struct Family {
  pid_t holder;
  pid_t child;
};

Family StartFamily(const std::filesystem::path& file) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto lock = FileLock::TryTake(file);
    if (!lock.ok()) ::_exit(1);
    if (::fork() == 0) {
      const pid_t self = ::getpid();
      (void)!::write(pipe[1], &self, sizeof self);
    }
    for (;;) ::pause();
  }
  Family family{.holder = holder, .child = 0};
  ::close(pipe[1]);
  EXPECT_EQ(::read(pipe[0], &family.child, sizeof family.child), ssize_t{sizeof family.child});
  ::close(pipe[0]);
  return family;
}

TEST_F(FileLockTest, TheLockOfAKilledProcessIsFreeEvenIfItsForkedChildLives) {
  const Family family = StartFamily(file_);
  EXPECT_TRUE(IsHeld());
  EXPECT_FALSE(FileLock::TryTake(file_).ok());
  ASSERT_EQ(::kill(family.holder, SIGKILL), 0);
  ::waitpid(family.holder, nullptr, 0);
  EXPECT_FALSE(IsHeld());
  EXPECT_TRUE(FileLock::TryTake(file_).ok());
  ASSERT_EQ(::kill(family.child, SIGKILL), 0);
}

TEST_F(FileLockTest, AChildThatEndsDoesNotFreeTheLockOfItsParent) {
  const auto lock = FileLock::TryTake(file_);
  ASSERT_TRUE(lock.ok());
  EXPECT_TRUE(zeus::testing::HoldsInAChild([&] { return IsHeld(); }));
  EXPECT_TRUE(IsHeld());
}

TEST_F(FileLockTest, AFolderThatIsMissingIsAnError) {
  EXPECT_FALSE(FileLock::TryTake(folder_.path() / "missing/a.lock").ok());
  EXPECT_FALSE(FileLock::IsHeld(folder_.path() / "missing/a.lock").value());
}

}  // namespace file_lock_test
}  // namespace zeus
