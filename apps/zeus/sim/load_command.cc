#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>

#include "apps/zeus/sim/commands.h"
#include "zeus/device/sim/workload.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kHeartbeat = 100ms;
// Of real time. A machine that is busy enough to delay ten heartbeats is asked about the process.
constexpr Seconds kHeartbeatTimeout = 1s;

struct LoadOptions {
  SimTarget target;
  std::optional<double> watts;
  std::string workload;
  unsigned batch_size = 0;
  std::optional<double> seconds;
};

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void StopOnSignals() {
  struct sigaction handler {};
  handler.sa_handler = [](int) { interrupted = true; };
  ::sigaction(SIGINT, &handler, nullptr);
  ::sigaction(SIGTERM, &handler, nullptr);
}

Result<sim::LoadSpec> MakeLoad(const LoadOptions& options, double time_scale) {
  if (options.watts.has_value() == !options.workload.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "say what to run: either --watts W or --workload NAME --batch-size B"};
  }
  sim::LoadSpec load;
  load.pid = ::getpid();
  load.heartbeat_timeout = kHeartbeatTimeout * time_scale;
  if (options.seconds) load.duration = Seconds(*options.seconds);
  if (options.watts) {
    load.demand = Watts(*options.watts);
    return load;
  }
  ZEUS_TRY(load.workload, sim::FindWorkload(options.workload));
  if (options.batch_size == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("workload {} needs --batch-size B, a positive number (its default is "
                             "{})",
                             options.workload, load.workload->default_batch_size)};
  }
  load.batch_size = options.batch_size;
  return load;
}

// Keeps the load alive until it ends, and takes it away when the user interrupts it.
Result<Seconds> Hold(sim::SharedNode& node, unsigned gpu, std::uint32_t load, Seconds end) {
  SystemClock clock;
  while (!interrupted && node.Now() < end) {
    if (node.stopped()) {
      return Error{ErrorCode::kUnavailable,
                   fmt::format("node \"{}\" was stopped under its load", node.name())};
    }
    clock.SleepFor(std::min(kHeartbeat, (end - node.Now()) / node.time_scale()));
    // A heartbeat after the end would move the GPU past the moment that is reported.
    if (node.Now() >= end) break;
    ZEUS_RETURN_IF_ERROR(node.Update(gpu, [&](sim::GpuCore& core) {
      core.Heartbeat(load);
      return Ok();
    }));
  }
  return std::min(end, node.Now());
}

Result<int> RunLoad(const LoadOptions& options) {
  SystemClock clock;
  ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(clock));
  ZEUS_TRY(sim::SharedNode node, directory.Open(options.target.name, sim::Access::kWrite));
  ZEUS_TRY(const sim::LoadSpec load, MakeLoad(options, node.time_scale()));
  const unsigned gpu = options.target.gpu;

  StopOnSignals();
  std::uint32_t id = 0;
  Seconds begin{};
  Joules before;
  ZEUS_RETURN_IF_ERROR(node.Update(gpu, [&](sim::GpuCore& core) -> Status {
    ZEUS_TRY(id, core.AttachLoad(load));
    begin = core.now();
    before = core.exact_energy();
    return Ok();
  }));
  ZEUS_TRY(const Seconds end, Hold(node, gpu, id, begin + load.duration));
  ZEUS_TRY(const auto view, node.Read(gpu, end));
  const Joules energy = view.core.exact_energy() - before;
  ZEUS_RETURN_IF_ERROR(node.Update(gpu, [&](sim::GpuCore& core) {
    core.DetachLoad(id);
    return Ok();
  }));
  fmt::print("GPU {} of node \"{}\": {:.1f} s{}, {:.1f} J, {:.1f} W on average\n", gpu, node.name(),
             (end - begin).count(), interrupted ? " (interrupted)" : "", energy.value(),
             (energy / (end - begin)).value());
  return 0;
}

}  // namespace

void AddSimLoad(CLI::App& sim, Action& action) {
  auto options = std::make_shared<LoadOptions>();
  CLI::App* command =
      sim.add_subcommand("load", "Run something on a simulated GPU, in the foreground");
  AddNameOption(*command, options->target.name);
  command->add_option("--gpu", options->target.gpu, "Index of the GPU")->required();
  command->add_option("--watts", options->watts, "A plain load that draws so much");
  command->add_option("--workload", options->workload, "A training job: resnet50, bert_qa, …");
  command->add_option("--batch-size", options->batch_size, "Of the training job");
  command->add_option("--seconds", options->seconds,
                      "How long, in node time; without it until interrupted");
  command->callback([options, &action] { action = [options] { return RunLoad(*options); }; });
}

}  // namespace zeus::cli
