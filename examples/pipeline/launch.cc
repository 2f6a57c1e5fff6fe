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

constexpr int kSignalExitCode = 128;  // Shells add the number of the signal to it.

// Both ends of every socket of the job, until each process has duplicated its own.
struct Sockets {
  std::vector<std::pair<int, int>> between;     // Between stage i and stage i + 1.
  std::vector<std::pair<int, int>> with_first;  // Between stage 0 and stage i + 1.

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

// Duplicates the end that belongs to this process, so that CloseAll() can close the originals:
// peers notice the end of a stage only when no other process holds its sockets.
std::unique_ptr<Channel> Duplicate(int socket) {
  return std::make_unique<Channel>(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
}

StageLinks ConnectStage(int stage, int stages, Sockets& sockets) {
  const auto at = static_cast<std::size_t>(stage);
  StageLinks links{.stage = stage};
  if (stage > 0) links.neighbours.left = Duplicate(sockets.between[at - 1].second);
  if (stage + 1 < stages) links.neighbours.right = Duplicate(sockets.between[at].first);
  std::vector<std::unique_ptr<Channel>> peers;
  if (stage == 0)
    for (const auto& pair : sockets.with_first) peers.push_back(Duplicate(pair.first));
  else
    peers.push_back(Duplicate(sockets.with_first[at - 1].second));
  links.collective = std::make_unique<SocketCollective>(stage, stages, std::move(peers));
  sockets.CloseAll();
  return links;
}

int ShellExitCode(int status) {
  return WIFSIGNALED(status) ? kSignalExitCode + WTERMSIG(status) : WEXITSTATUS(status);
}

// Blocks the signals that end a job, so that the job's process can wait for them and for its
// children alike. Signals that the caller had set to be ignored (nohup) stay ignored.
class HeldSignals {
 public:
  HeldSignals() {
    ::signal(SIGCHLD, SIG_DFL);  // Children leave no exit code if it is ignored.
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

// Collects the children that have ended. Returns the exit code of the first one that failed, else
// 0.
int Reap(std::vector<pid_t>& running) {
  int failed = 0;
  int status = 0;
  for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    std::erase(running, ended);
    if (failed == 0) failed = ShellExitCode(status);
  }
  return failed;
}

// Waits for all stages. Once one fails or a signal ends the job, the remaining stages get a signal
// too: each restores its clock before it ends.
int WaitForAll(std::vector<pid_t> running, const HeldSignals& signals) {
  int worst = 0;
  while (!running.empty()) {
    const int signal = signals.Wait();
    if (signal < 0) continue;  // A child was stopped or continued.
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

// Ends this stage when the job's process ends, however that happens.
void EndWith(pid_t job) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != job) std::exit(kSignalExitCode + SIGTERM);  // The job ended before prctl().
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
      std::exit(run(ConnectStage(stage, stages, sockets)));
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
