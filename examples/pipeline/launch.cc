#include "examples/pipeline/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

namespace zeus::examples {
namespace {

constexpr int kSignalExitCode = 128;  // The shells' convention.

// Both ends of every socket of the job, until each process has taken its own.
struct Sockets {
  std::vector<std::pair<int, int>> between;     // Of stage i and stage i + 1.
  std::vector<std::pair<int, int>> with_first;  // Of stage 0 and stage i + 1.

  void CloseAll() {
    for (const auto* pairs : {&between, &with_first})
      for (const auto& [a, b] : *pairs) {
        ::close(a);
        ::close(b);
      }
  }
};

Result<Sockets> MakeSockets(int stages) {
  Sockets sockets;
  for (int i = 0; i + 1 < stages; ++i) {
    ZEUS_TRY(const auto neighbours, Channel::Pair());
    ZEUS_TRY(const auto with_first, Channel::Pair());
    sockets.between.push_back(neighbours);
    sockets.with_first.push_back(with_first);
  }
  return sockets;
}

// Its own ends, as copies; a stage that ends must be the last one to hold them.
std::unique_ptr<Channel> Take(int socket) {
  return std::make_unique<Channel>(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
}

StageLinks LinksOf(int stage, int stages, Sockets& sockets) {
  const auto at = static_cast<std::size_t>(stage);
  StageLinks links{.stage = stage};
  if (stage > 0) links.neighbours.left = Take(sockets.between[at - 1].second);
  if (stage + 1 < stages) links.neighbours.right = Take(sockets.between[at].first);
  std::vector<std::unique_ptr<Channel>> peers;
  if (stage == 0)
    for (const auto& pair : sockets.with_first) peers.push_back(Take(pair.first));
  else
    peers.push_back(Take(sockets.with_first[at - 1].second));
  links.collective = std::make_unique<SocketCollective>(stage, stages, std::move(peers));
  sockets.CloseAll();
  return links;
}

int ExitCodeOf(int status) {
  return WIFSIGNALED(status) ? kSignalExitCode + WTERMSIG(status) : WEXITSTATUS(status);
}

// Holds the signals that end a job back, so that the job's process can wait for them and for its
// children alike. Those that the caller had us ignore (nohup) stay ignored.
class HeldSignals {
 public:
  HeldSignals() {
    ::signal(SIGCHLD, SIG_DFL);  // Ignored, children would leave no exit code.
    ::sigemptyset(&held_);
    ::sigaddset(&held_, SIGCHLD);
    for (const int ending : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction present {};
      ::sigaction(ending, nullptr, &present);
      if (present.sa_handler != SIG_IGN) ::sigaddset(&held_, ending);
    }
    ::sigprocmask(SIG_BLOCK, &held_, &before_);
  }
  ~HeldSignals() { Release(); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  void Release() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  int Wait() const { return ::sigwaitinfo(&held_, nullptr); }

 private:
  sigset_t held_{};
  sigset_t before_{};
};

void Tell(std::span<const pid_t> stages, int signal) {
  for (const pid_t stage : stages) ::kill(stage, signal);
}

// The exit code of the first child that failed, of those that have ended by now; else 0.
int Reap(std::vector<pid_t>& running) {
  int failed = 0;
  int status = 0;
  for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    std::erase(running, ended);
    if (failed == 0) failed = ExitCodeOf(status);
  }
  return failed;
}

// Those that still run are told to end once one of them failed, and told of signals that end the
// job: each puts its clock back before it ends.
int WaitForAll(std::vector<pid_t> running, const HeldSignals& signals) {
  int worst = 0;
  while (!running.empty()) {
    const int signal = signals.Wait();
    if (signal < 0) continue;  // Stopped and continued.
    const int before = worst;
    if (signal == SIGCHLD) {
      const int failed = Reap(running);
      worst = worst == 0 ? failed : worst;
      if (before == 0 && worst != 0) Tell(running, SIGTERM);
    } else {
      worst = worst == 0 ? kSignalExitCode + signal : worst;
      Tell(running, signal);
    }
  }
  return worst;
}

// A stage does not outlive its job, however that ends.
void EndWith(pid_t job) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != job) std::exit(kSignalExitCode + SIGTERM);  // It ended before that.
}

}  // namespace

Result<int> RunStages(int stages, const std::function<int(StageLinks)>& run) {
  ZEUS_TRY(Sockets sockets, MakeSockets(stages));
  std::fflush(nullptr);
  HeldSignals signals;
  const pid_t job = ::getpid();
  std::vector<pid_t> running;
  for (int stage = 0; stage < stages; ++stage) {
    const pid_t child = ::fork();
    if (child == 0) {
      EndWith(job);
      signals.Release();
      std::exit(run(LinksOf(stage, stages, sockets)));
    }
    if (child > 0) {
      running.push_back(child);
      continue;
    }
    Tell(running, SIGTERM);
    return Error{ErrorCode::kUnavailable, "no more processes can be started on this machine"};
  }
  sockets.CloseAll();
  return WaitForAll(std::move(running), signals);
}

}  // namespace zeus::examples
