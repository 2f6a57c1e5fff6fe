#include "apps/zeus/calibrate/command_load.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;
using calibration::LoadState;

constexpr Seconds kPatience = 60s;  // Importing a framework takes a while.
constexpr Seconds kGrace = 2s;      // To end by itself.
constexpr Seconds kLookInterval = 5ms;

Error SystemError(std::string_view doing, int number) {
  return {ErrorCode::kUnavailable,
          fmt::format("{}: {}", doing, std::generic_category().message(number))};
}

using OwnedFile = std::unique_ptr<FileDescriptor>;

struct Pipe {
  OwnedFile read;
  OwnedFile write;
};

Result<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return SystemError("make a pipe", errno);
  Pipe pipe;
  pipe.read = std::make_unique<FileDescriptor>(ends[0]);
  pipe.write = std::make_unique<FileDescriptor>(ends[1]);
  return pipe;
}

// This process's environment, narrowed to one GPU.
std::vector<std::string> EnvironmentFor(const Gpu& gpu) {
  const GpuIdentity& identity = gpu.identity();
  const std::string variable = identity.vendor == Vendor::kAmd      ? "ROCR_VISIBLE_DEVICES="
                               : identity.vendor == Vendor::kNvidia ? "CUDA_VISIBLE_DEVICES="
                                                                    : "ZE_AFFINITY_MASK=";
  const std::string index = gpu.name().substr(gpu.name().find(':') + 1);
  const bool by_uuid = identity.vendor == Vendor::kNvidia && !identity.uuid.empty();
  std::vector<std::string> entries{variable + (by_uuid ? identity.uuid : index),
                                   "ZEUS_CALIBRATE_GPU=" + index};
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with(variable)) entries.emplace_back(*entry);
  return entries;
}

// Starts `sh -c command` in a process group of its own.
Result<pid_t> Spawn(const std::string& command, const Gpu& gpu, const Pipe& input,
                    const Pipe& output) {
  std::vector<std::string> entries = EnvironmentFor(gpu);
  std::vector<char*> environment;
  for (std::string& entry : entries) environment.push_back(entry.data());
  environment.push_back(nullptr);
  std::string shell = "sh";
  std::string option = "-c";
  std::string text = command;
  char* const arguments[] = {shell.data(), option.data(), text.data(), nullptr};

  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, input.read->get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, output.write->get(), STDOUT_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  for (const int number : {SIGINT, SIGTERM, SIGPIPE}) ::sigaddset(&defaults, number);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int failed =
      ::posix_spawn(&child, "/bin/sh", &files, &attributes, arguments, environment.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return SystemError("start the load command", failed);
  return child;
}

class CommandLoad final : public SwitchedLoad {
 public:
  CommandLoad(Clock& clock, pid_t child, OwnedFile input, OwnedFile output)
      : clock_(clock), child_(child), input_(std::move(input)), output_(std::move(output)) {
    ::fcntl(output_->get(), F_SETFL, O_NONBLOCK);
  }

  ~CommandLoad() override {
    input_.reset();  // Its end of input.
    ::kill(-child_, SIGTERM);
    const TimePoint last = clock_.Now() + kGrace;
    while (!Ended() && clock_.Now() < last) clock_.SleepFor(kLookInterval);
    // Also what the command started and left behind.
    ::kill(-child_, SIGKILL);
    if (!status_) ::waitpid(child_, nullptr, 0);
  }

  Status WaitUntilReady(const Interruption& interruption) {
    const TimePoint last = clock_.Now() + kPatience;
    std::string said;
    while (interruption.signal() == 0) {
      said += Hear();
      if (("\n" + said).find("\nready\n") != std::string::npos) return Ok();
      if (Ended()) return EndedEarly();
      if (clock_.Now() > last) {
        return Error{ErrorCode::kUnavailable,
                     fmt::format("the load command did not print \"ready\" within {:g} s: see "
                                 "docs/calibration.md for what it has to do",
                                 kPatience.count())};
      }
      clock_.SleepFor(kLookInterval);
    }
    return Ok();
  }

  Status Switch(LoadState state) override {
    Hear();  // So that it never waits for a reader.
    if (Ended()) return EndedEarly();
    const std::string_view order = state == LoadState::kBusy ? "1\n" : "0\n";
    if (::write(input_->get(), order.data(), order.size()) < 0)
      return SystemError("tell the load command what to do", errno);
    return Ok();
  }

 private:
  std::string Hear() {
    std::string heard;
    char buffer[4096];
    for (;;) {
      const ssize_t got = ::read(output_->get(), buffer, sizeof buffer);
      if (got <= 0) return heard;
      heard.append(buffer, static_cast<std::size_t>(got));
    }
  }

  bool Ended() {
    int status = 0;
    if (!status_ && ::waitpid(child_, &status, WNOHANG) == child_) status_ = status;
    return status_.has_value();
  }

  Error EndedEarly() const {
    const int status = *status_;
    return {ErrorCode::kUnavailable,
            WIFSIGNALED(status)
                ? fmt::format("the load command was ended by signal {}", WTERMSIG(status))
                : fmt::format("the load command ended early, with exit code {}: it must go on "
                              "until its input ends",
                              WEXITSTATUS(status))};
  }

  Clock& clock_;
  const pid_t child_;
  OwnedFile input_;
  OwnedFile output_;
  std::optional<int> status_;  // Once it has ended.
};

}  // namespace

Result<std::unique_ptr<SwitchedLoad>> StartCommandLoad(Clock& clock, const std::string& command,
                                                       const Gpu& gpu,
                                                       const Interruption& interruption) {
  ZEUS_TRY(Pipe input, MakePipe());
  ZEUS_TRY(Pipe output, MakePipe());
  ZEUS_TRY(const pid_t child, Spawn(command, gpu, input, output));
  auto load =
      std::make_unique<CommandLoad>(clock, child, std::move(input.write), std::move(output.read));
  ZEUS_RETURN_IF_ERROR(load->WaitUntilReady(interruption));
  return std::unique_ptr<SwitchedLoad>(std::move(load));
}

}  // namespace zeus::cli
