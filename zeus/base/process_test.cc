#include "zeus/base/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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

}  // namespace process_test
}  // namespace zeus
