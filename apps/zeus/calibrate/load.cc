#include "apps/zeus/calibrate/load.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/spawn.h"
#include "zeus/base/text.h"
#include "zeus/device/sim/node_directory.h"

namespace zeus::cli {
namespace {

using calibration::LoadState;

// Share of the power limit: it gives as much contrast as possible without reaching the limit, which
// would distort the step.
constexpr double kShareOfLimit = 0.7;
// The node ends the load if this process dies. Longer than any stretch of the square wave.
constexpr Seconds kHeartbeatTimeout(10);

class SimulatedLoad final : public SwitchedLoad {
 public:
  SimulatedLoad(sim::SharedNode node, unsigned index, Watts demand)
      : node_(std::move(node)), index_(index) {
    spec_.demand = demand;
    spec_.pid = ::getpid();
    spec_.heartbeat_timeout = kHeartbeatTimeout * node_.time_scale();
  }
  ~SimulatedLoad() override {
    // An error is ignored: a node that was stopped meanwhile has no load either.
    static_cast<void>(Switch(LoadState::kIdle));
  }

  Status Switch(LoadState state) override {
    return node_.Update(index_, [&](sim::GpuCore& core) -> Status {
      if (id_) core.DetachLoad(*id_);
      id_.reset();
      if (state == LoadState::kIdle) return Ok();
      ZEUS_TRY(id_, core.AttachLoad(spec_));
      return Ok();
    });
  }

 private:
  sim::SharedNode node_;
  const unsigned index_;
  sim::LoadSpec spec_;
  std::optional<std::uint32_t> id_;
};

std::optional<unsigned> FindGpuByUuid(const sim::SharedNode& node, const std::string& uuid) {
  for (unsigned i = 0; i < node.gpu_count(); ++i) {
    const auto view = node.Read(i, node.Now());
    if (view.ok() && view.value().core.uuid() == uuid) return i;
  }
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<SwitchedLoad>> OpenSimulatedLoad(Clock& clock, Gpu& gpu) {
  const std::string name = sim::ChosenNodeName();
  const auto directory = sim::NodeDirectory::FromEnvironment(clock);
  if (!directory.ok()) return std::unique_ptr<SwitchedLoad>();
  const auto readable = directory.value().Open(name, sim::Access::kRead);
  if (!readable.ok()) return std::unique_ptr<SwitchedLoad>();
  const auto index = FindGpuByUuid(readable.value(), gpu.identity().uuid);
  if (!index) return std::unique_ptr<SwitchedLoad>();
  ZEUS_TRY(sim::SharedNode node, directory.value().Open(name, sim::Access::kWrite));
  ZEUS_TRY(const PowerLimit limit, gpu.CurrentPowerLimit());
  return std::unique_ptr<SwitchedLoad>(
      std::make_unique<SimulatedLoad>(std::move(node), *index, limit.enforced * kShareOfLimit));
}

namespace {

using namespace std::chrono_literals;

constexpr Seconds kStartTimeout = 60s;  // Importing a framework takes a while.
constexpr Seconds kEndTimeout = 2s;     // For the command to end by itself.
constexpr Seconds kOutputPollInterval = 5ms;

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
Result<pid_t> SpawnLoad(const std::string& command, const Gpu& gpu, const Pipe& input,
                        const Pipe& output) {
  auto child = Spawn({.command = {"/bin/sh", "-c", command},
                      .environment = EnvironmentFor(gpu),
                      .input = input.read->get(),
                      .output = output.write->get(),
                      .own_process_group = true});
  if (!child.ok()) return std::move(child).error().While("start the load command");
  return child;
}

class CommandLoad final : public SwitchedLoad {
 public:
  CommandLoad(Clock& clock, pid_t child, OwnedFile input, OwnedFile output)
      : clock_(clock), child_(child), input_(std::move(input)), output_(std::move(output)) {
    ::fcntl(output_->get(), F_SETFL, O_NONBLOCK);
  }

  ~CommandLoad() override {
    input_.reset();  // The command sees the end of its input.
    ::kill(-child_, SIGTERM);
    const TimePoint last = clock_.Now() + kEndTimeout;
    while (!Ended() && clock_.Now() < last) clock_.SleepFor(kOutputPollInterval);
    // Kill the whole process group: the command may have left children behind.
    ::kill(-child_, SIGKILL);
    if (!status_) ::waitpid(child_, nullptr, 0);
  }

  Status WaitUntilReady(SignalWatch& signals) {
    const TimePoint last = clock_.Now() + kStartTimeout;
    std::string said;
    while (signals.stop_signal() == 0) {
      said += ReadOutput();
      if (("\n" + said).find("\nready\n") != std::string::npos) return Ok();
      if (Ended()) return EndedEarly();
      if (clock_.Now() > last) {
        return Error{ErrorCode::kUnavailable,
                     fmt::format("the load command did not print \"ready\" within {:g} s: see "
                                 "docs/calibration.md for what it has to do",
                                 kStartTimeout.count())};
      }
      clock_.SleepFor(kOutputPollInterval);
    }
    return Ok();
  }

  Status Switch(LoadState state) override {
    ReadOutput();  // Empty the pipe, so that the command never waits for a reader.
    if (Ended()) return EndedEarly();
    const std::string_view order = state == LoadState::kBusy ? "1\n" : "0\n";
    if (::write(input_->get(), order.data(), order.size()) < 0)
      return SystemError("tell the load command what to do", errno);
    return Ok();
  }

 private:
  std::string ReadOutput() {
    std::string text;
    char buffer[4096];
    for (;;) {
      const ssize_t got = ::read(output_->get(), buffer, sizeof buffer);
      if (got <= 0) return text;
      text.append(buffer, static_cast<std::size_t>(got));
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
  std::optional<int> status_;  // Set once the command has ended.
};

}  // namespace

Result<std::unique_ptr<SwitchedLoad>> StartCommandLoad(Clock& clock, const std::string& command,
                                                       const Gpu& gpu, SignalWatch& signals) {
  ZEUS_TRY(Pipe input, MakePipe());
  ZEUS_TRY(Pipe output, MakePipe());
  ZEUS_TRY(const pid_t child, SpawnLoad(command, gpu, input, output));
  auto load =
      std::make_unique<CommandLoad>(clock, child, std::move(input.write), std::move(output.read));
  ZEUS_RETURN_IF_ERROR(load->WaitUntilReady(signals));
  return std::unique_ptr<SwitchedLoad>(std::move(load));
}

}  // namespace zeus::cli
