#include "zeus/base/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zeus/base/testing/child_process.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus {
namespace process_test {

// A procfs of our own, in which pid 7 is `stat`.
class ProcessTest : public ::testing::Test {
 protected:
  ProcessTest() {
    procfs_.AddFile("self/ns/x", "");
    std::filesystem::create_symlink("pid:[1]", procfs_.path() / "self/ns/pid");
  }
  void SetStat(const std::string& state, int start) {
    std::string stat = "7 (a (strange) name) " + state;
    for (int i = 0; i < 18; ++i) stat += " 0";
    procfs_.AddFile("7/stat", stat + " " + std::to_string(start) + " 0 0\n");
  }
  bool Runs(const ProcessIdentity& process) { return IsRunning(process, procfs_.path()); }

  zeus::testing::TemporaryDirectory procfs_;
  const ProcessIdentity process_{.pid = 7, .start_ticks = 55, .pid_namespace = "pid:[1]"};
};

TEST_F(ProcessTest, ThisOneRuns) {
  const auto self = ThisProcess();
  ASSERT_TRUE(self.ok());
  EXPECT_EQ(self.value().pid, ::getpid());
  EXPECT_TRUE(IsRunning(self.value()));
}

TEST_F(ProcessTest, AnEndedChildDoesNotRunEvenBeforeItIsWaitedFor) {
  const pid_t child = ::fork();
  if (child == 0) ::pause();
  ProcessIdentity identity = ThisProcess().value();
  identity.pid = child;
  ::kill(child, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(IsRunning(identity));
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(IsRunning(identity));
}

TEST_F(ProcessTest, ANumberThatWasGivenAgainIsAnotherProcess) {
  SetStat("S", 55);
  EXPECT_TRUE(Runs(process_));
  SetStat("S", 56);
  EXPECT_FALSE(Runs(process_));
  SetStat("Z", 55);
  EXPECT_FALSE(Runs(process_));
}

TEST_F(ProcessTest, AProcessIsFoundByItsNumber) {
  EXPECT_EQ(ProcessWithPid(::getpid()).value(), ThisProcess().value());
  SetStat("S", 55);
  EXPECT_EQ(ProcessWithPid(7, procfs_.path()).value(), process_);
  EXPECT_EQ(ProcessWithPid(8, procfs_.path()).error().code, ErrorCode::kNotFound);
}

TEST_F(ProcessTest, AProcessOfAnotherNamespaceCountsAsRunning) {
  ProcessIdentity foreign = process_;
  EXPECT_FALSE(Runs(foreign));
  foreign.pid_namespace = "pid:[2]";
  EXPECT_TRUE(Runs(foreign));
}

TEST_F(ProcessTest, AStrangeStatIsNoReasonToCallItDead) {
  procfs_.AddFile("7/stat", "nonsense");
  EXPECT_TRUE(Runs(process_));
}

using zeus::testing::HoldsInAChild;

TEST(ForkTest, EveryGenerationOfChildrenKnowsThatItIsOne) {
  WatchForks();
  WatchForks();
  const unsigned here = ForkGeneration();

  EXPECT_TRUE(HoldsInAChild([&] {
    return ForkGeneration() == here + 1 &&
           HoldsInAChild([&] { return ForkGeneration() == here + 2; });
  }));
  EXPECT_EQ(ForkGeneration(), here);
}

class ExecutableTest : public ::testing::Test {
 protected:
  std::filesystem::path Add(const std::string& name, bool executable) {
    auto file = directory_.AddFile(name, "#!/bin/sh\n");
    const auto mode = std::filesystem::perms::owner_read;
    std::filesystem::permissions(file,
                                 executable ? mode | std::filesystem::perms::owner_exec : mode);
    return file;
  }

  // Searches two folders of the test and one that does not exist.
  Result<std::filesystem::path> Find(const std::string& command) {
    const std::string root = directory_.path().string();
    return FindExecutable(command, [root](const std::string& variable) {
      return variable == "PATH" ? std::optional(root + "/none:" + root + "/one:" + root + "/two")
                                : std::nullopt;
    });
  }

  testing::TemporaryDirectory directory_;
};

TEST_F(ExecutableTest, TheFirstInPathIsFound) {
  Add("one/other", true);
  Add("one/tool", false);
  const auto second = Add("two/tool", true);
  const auto found = Find("tool");
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found.value(), second);
}

TEST_F(ExecutableTest, ACommandThatIsNotThereIsNotFound) {
  const auto found = Find("tool");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(found.error().message, "tool: no such command in PATH");
  EXPECT_EQ(Find("").error().code, ErrorCode::kNotFound);
}

TEST_F(ExecutableTest, AFileThatMayNotBeExecutedIsNoCommand) {
  Add("one/tool", false);
  EXPECT_EQ(Find("tool").error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(Find(directory_.path().string() + "/one").error().code, ErrorCode::kNotSupported);
}

TEST_F(ExecutableTest, APathIsTakenAsItIs) {
  const auto file = Add("one/tool", true);
  EXPECT_TRUE(Find(file.string()).ok());
  const auto missing = Find(file.string() + "s");
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().message, file.string() + "s: no such file or directory");
}

}  // namespace process_test
}  // namespace zeus
