#include "zeus/base/spawn.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>

#include "zeus/base/process.h"

namespace zeus {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// The changes that posix_spawn() makes in the child: files and signals. Owns their memory.
class SpawnChanges {
 public:
  explicit SpawnChanges(const SpawnOptions& options) {
    ::posix_spawn_file_actions_init(&files_);
    if (options.input) ::posix_spawn_file_actions_adddup2(&files_, *options.input, STDIN_FILENO);
    if (options.output) ::posix_spawn_file_actions_adddup2(&files_, *options.output, STDOUT_FILENO);
    if (options.error) ::posix_spawn_file_actions_adddup2(&files_, *options.error, STDERR_FILENO);
    ::posix_spawnattr_init(&attributes_);
    sigset_t defaults;
    ::sigemptyset(&defaults);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) ::sigaddset(&defaults, signal);
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    short flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
    if (options.own_process_group) {
      ::posix_spawnattr_setpgroup(&attributes_, 0);
      flags = static_cast<short>(flags | POSIX_SPAWN_SETPGROUP);
    }
    ::posix_spawnattr_setflags(&attributes_, flags);
  }
  ~SpawnChanges() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&files_);
  }
  SpawnChanges(const SpawnChanges&) = delete;
  SpawnChanges& operator=(const SpawnChanges&) = delete;

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

Result<pid_t> Spawn(const SpawnOptions& options) {
  assert(!options.command.empty());
  const SpawnChanges changes(options);
  std::vector<std::string> command = options.command;
  std::vector<std::string> environment = options.environment.value_or(std::vector<std::string>());
  pid_t process = 0;
  const int failed = ::posix_spawnp(&process, command.front().c_str(), changes.files(),
                                    changes.attributes(), Pointers(command).data(),
                                    options.environment ? Pointers(environment).data() : environ);
  if (failed != 0) return CannotExecute(command.front(), failed);
  return process;
}

int WaitForEnd(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace zeus
