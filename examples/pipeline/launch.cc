#include "examples/pipeline/launch.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
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

// Those that still run are told to end once one of them failed.
int WaitForAll(std::vector<pid_t> running) {
  int worst = 0;
  while (!running.empty()) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, 0);
    if (ended < 0 && errno == EINTR) continue;
    if (ended < 0) return std::max(worst, 1);
    std::erase(running, ended);
    const int code = ExitCodeOf(status);
    if (code != 0 && worst == 0)
      for (const pid_t other : running) ::kill(other, SIGTERM);
    worst = worst == 0 ? code : worst;
  }
  return worst;
}

}  // namespace

Result<int> RunStages(int stages, const std::function<int(StageLinks)>& run) {
  ZEUS_TRY(Sockets sockets, MakeSockets(stages));
  std::fflush(nullptr);
  std::vector<pid_t> running;
  for (int stage = 0; stage < stages; ++stage) {
    const pid_t child = ::fork();
    if (child == 0) std::exit(run(LinksOf(stage, stages, sockets)));
    if (child > 0) {
      running.push_back(child);
      continue;
    }
    for (const pid_t other : running) ::kill(other, SIGTERM);
    return Error{ErrorCode::kUnavailable, "no more processes can be started on this machine"};
  }
  sockets.CloseAll();
  return WaitForAll(std::move(running));
}

}  // namespace zeus::examples
