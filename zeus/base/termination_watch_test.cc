#include "zeus/base/termination_watch.h"

#include <gtest/gtest.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>

#include "zeus/base/testing/sanitized.h"

namespace zeus {
namespace termination_watch_test {

// How a child that runs `body` ends; the body writes what it does to the pipe.
struct Ending {
  int status = 0;
  std::string said;
};

Ending RunToItsEnd(const std::function<void(const std::function<void(char)>& say)>& body) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    body([&ends](char word) { (void)!::write(ends[1], &word, 1); });
    ::_exit(0);
  }
  ::close(ends[1]);
  Ending ending;
  char word = 0;
  while (::read(ends[0], &word, 1) == 1) ending.said += word;
  ::close(ends[0]);
  ::waitpid(child, &ending.status, 0);
  return ending;
}

bool KilledBy(int status, int signal) { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }

TEST(TerminationWatchTest, TheLastWordIsSpokenAndTheSignalEndsTheProgram) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const Ending ending = RunToItsEnd([signal](const auto& say) {
      const auto watch = TerminationWatch::Start([&say] { say('w'); });
      ::raise(signal);
      for (;;) ::pause();
    });
    EXPECT_EQ(ending.said, "w");
    EXPECT_TRUE(KilledBy(ending.status, signal));
  }
}

sem_t handled;

TEST(TerminationWatchTest, TheProgramsOwnHandlerIsCalledAfterwardsAndItMayGoOn) {
  const Ending ending = RunToItsEnd([](const auto& say) {
    ::sem_init(&handled, 0, 0);
    ::signal(SIGTERM, [](int) { ::sem_post(&handled); });
    const auto watch = TerminationWatch::Start([&say] { say('w'); });
    for (const char arming : {'1', '2'}) {
      watch.value()->Arm();
      ::raise(SIGTERM);
      while (::sem_wait(&handled) != 0) continue;
      say(arming);
    }
    ::raise(SIGTERM);  // Not armed.
    while (::sem_wait(&handled) != 0) continue;
  });
  EXPECT_TRUE(WIFEXITED(ending.status));
  EXPECT_EQ(ending.said, "w1w2");
}

TEST(TerminationWatchTest, IgnoredSignalsStayIgnored) {
  const Ending ending = RunToItsEnd([](const auto& say) {
    ::signal(SIGHUP, SIG_IGN);
    const auto watch = TerminationWatch::Start([&say] { say('w'); });
    ::raise(SIGHUP);
    say('.');
  });
  EXPECT_EQ(ending.said, ".");
  EXPECT_TRUE(WIFEXITED(ending.status));
}

TEST(TerminationWatchTest, AForkedChildEndsAtOnceAndItsParentNoticesNothing) {
  if (!zeus::testing::kForksBesideThreads)
    GTEST_SKIP() << "the thread sanitizer holds signals back";
  const Ending ending = RunToItsEnd([](const auto& say) {
    const auto watch = TerminationWatch::Start([&say] { say('w'); });
    const pid_t grandchild = ::fork();
    if (grandchild == 0)
      for (;;) ::pause();
    ::kill(grandchild, SIGTERM);
    int status = 0;
    ::waitpid(grandchild, &status, 0);
    say(KilledBy(status, SIGTERM) ? 'k' : 'x');
  });
  EXPECT_EQ(ending.said, "k");
}

TEST(TerminationWatchTest, WithoutItEverythingIsAsBefore) {
  const Ending ending = RunToItsEnd([](const auto& say) {
    {
      const auto watch = TerminationWatch::Start([&say] { say('w'); });
    }
    ::raise(SIGTERM);
  });
  EXPECT_EQ(ending.said, "");
  EXPECT_TRUE(KilledBy(ending.status, SIGTERM));
}

}  // namespace termination_watch_test
}  // namespace zeus
