#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "apps/zeus/numbers.h"
#include "apps/zeus/sim/commands.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/device/sim/fault.h"
#include "zeus/device/sim/load.h"
#include "zeus/device/sim/workload.h"
#include "zeus/process/signal_watch.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr int kSignalExitCode = 128;   // The shells' convention: 130 for SIGINT, 143 for SIGTERM.
constexpr Seconds kHeartbeat = 100ms;  // In real time.
constexpr double kShortestSeconds = 0.001;
constexpr double kLongestSeconds = 1e9;

struct LoadOptions {
  SimTarget target;
  std::optional<double> watts;
  std::string workload;
  unsigned batch_size = 0;
  std::optional<double> seconds;
  bool progress = false;
};

Result<sim::LoadSpec> MakeLoad(const LoadOptions& options, double time_scale) {
  if (options.watts.has_value() == !options.workload.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "say what to run: either --watts W or --workload NAME --batch-size B"};
  }
  if (options.watts && options.progress) {
    return Error{ErrorCode::kInvalidArgument,
                 "--progress belongs to --workload: a load of --watts has no steps"};
  }
  if (options.watts && options.batch_size != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "--batch-size belongs to --workload: a load of --watts has no steps"};
  }
  sim::LoadSpec load;
  load.pid = ::getpid();
  load.heartbeat_timeout *= time_scale;
  if (options.seconds) load.duration = Seconds(*options.seconds);
  if (options.watts) {
    load.demand = Watts(*options.watts);
    return load;
  }
  ZEUS_TRY(load.workload, sim::FindWorkload(options.workload));
  if (options.batch_size == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("workload {} needs --batch-size B (its default is {})",
                             options.workload, load.workload->default_batch_size)};
  }
  load.batch_size = options.batch_size;
  return load;
}

// The work that a load has done up to a moment.
struct Progress {
  Seconds time;
  Joules energy;     // Exact, of the whole GPU.
  double steps = 0;  // Steps of a workload.
};

class RunningLoad {
 public:
  enum class Output { kNone, kSteps };

  RunningLoad(sim::SharedNode& node, unsigned gpu, Output output)
      : node_(node), gpu_(gpu), output_(output) {}

  Status Begin(const sim::LoadSpec& load) {
    load_ = load;
    ZEUS_RETURN_IF_ERROR(node_.Update(gpu_, [&](sim::GpuCore& core) -> Status {
      ZEUS_TRY(id_, core.AttachLoad(load));
      begin_ = Look(core);
      return Ok();
    }));
    last_ = begin_;
    end_ = begin_.time + load.duration;
    return Ok();
  }

  // Keeps the load alive until its time is over or the user interrupts it.
  Status Hold(SignalWatch& signals) {
    const SystemClock clock;
    while (signals.stop_signal() == 0 && node_.Now() < end_) {
      if (node_.stopped()) {
        return Error{ErrorCode::kUnavailable,
                     fmt::format("node \"{}\" was stopped under its load", node_.name())};
      }
      signals.WaitUntil(
          clock.Now() + std::min(kHeartbeat, (end_ - node_.Now()) / node_.time_scale()), clock);
      // A heartbeat after the end would move the GPU past the moment that is reported.
      if (node_.Now() >= end_) break;
      ZEUS_RETURN_IF_ERROR(node_.Update(gpu_, [&](sim::GpuCore& core) { return Beat(core); }));
      if (output_ == Output::kSteps) {
        fmt::print("step {:.3f}\n", last_.steps);
        if (Status flushed = FlushOutput(); !flushed.ok()) {
          if (OutputHasReader()) return flushed;
          // The program that loads the GPU has ended, so the load ends with it.
          AbandonOutput();
          return Ok();
        }
      }
    }
    return Ok();
  }

  // Detaches the load.
  Status End() {
    // At its end the load is gone, so it is read a moment earlier.
    const Seconds last_moment(std::nextafter(end_.count(), 0.0));
    ZEUS_TRY(const auto view, node_.Read(gpu_, std::min(last_moment, node_.Now())));
    // If another process has changed the GPU since, the last heartbeat is the last known state.
    if (view.core.now() <= last_moment) last_ = Look(view.core);
    return node_.Update(gpu_, [&](sim::GpuCore& core) {
      core.DetachLoad(id_);
      return Ok();
    });
  }

  Seconds duration() const { return last_.time - begin_.time; }
  Joules energy() const { return last_.energy - begin_.energy; }
  Watts power() const { return duration() > 0s ? energy() / duration() : Watts(0); }
  double steps() const { return last_.steps; }

 private:
  Status Beat(sim::GpuCore& core) {
    if (core.now() >= end_) return Ok();
    load_.duration = end_ - core.now();
    ZEUS_TRY(const std::uint32_t id, core.Heartbeat(id_, load_));
    // This process was stopped for so long that the load ended; the new load continues its steps.
    if (id != id_) earlier_steps_ = last_.steps;
    id_ = id;
    last_ = Look(core);
    return Ok();
  }

  Progress Look(const sim::GpuCore& core) const {
    const auto steps = core.StepsDone(id_);
    return {.time = core.now(),
            .energy = core.exact_energy(),
            .steps = steps.ok() ? earlier_steps_ + steps.value() : last_.steps};
  }

  sim::SharedNode& node_;
  const unsigned gpu_;
  const Output output_;
  sim::LoadSpec load_;
  std::uint32_t id_ = 0;
  Seconds end_{};
  Progress begin_;
  Progress last_;
  double earlier_steps_ = 0;  // Steps before the load was attached again.
};

std::string Describe(const sim::LoadSpec& load, const RunningLoad& run) {
  if (load.demand) return fmt::format("{:g} W for", load.demand->value());
  const auto steps_per_epoch =
      static_cast<double>(sim::StepsPerEpoch(*load.workload, load.batch_size));
  return fmt::format("{} with batch size {} did {:.0f} steps ({:.4g} epochs) in",
                     load.workload->name, load.batch_size, std::floor(run.steps()),
                     run.steps() / steps_per_epoch);
}

Result<int> RunLoad(const LoadOptions& options) {
  SystemClock clock;
  ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(clock));
  ZEUS_TRY(sim::SharedNode node, directory.Open(options.target.name, sim::Access::kWrite));
  ZEUS_TRY(const sim::LoadSpec load, MakeLoad(options, node.time_scale()));

  ZEUS_TRY(const std::unique_ptr<SignalWatch> signals,
           SignalWatch::Start(SignalWatch::Program::kLoad));
  RunningLoad run(node, options.target.gpu,
                  options.progress ? RunningLoad::Output::kSteps : RunningLoad::Output::kNone);
  ZEUS_RETURN_IF_ERROR(run.Begin(load));
  ZEUS_RETURN_IF_ERROR(run.Hold(*signals));
  ZEUS_RETURN_IF_ERROR(run.End());

  // Without --seconds, an interruption is the intended end.
  const int signal = options.seconds ? signals->stop_signal() : 0;
  fmt::print("GPU {} of node \"{}\": {} {:.1f} s{}: {:.1f} J, {:.1f} W on average\n",
             options.target.gpu, node.name(), Describe(load, run), run.duration().count(),
             signal != 0 ? fmt::format(" of {:g} s (interrupted)", load.duration.count()) : "",
             run.energy().value(), run.power().value());
  return signal != 0 ? kSignalExitCode + signal : 0;
}

}  // namespace

void AddSimLoad(Verb sim, Action& action) {
  auto options = std::make_shared<LoadOptions>();
  const Verb command = sim.AddVerb("load", "Run something on a simulated GPU, in the foreground");
  AddNameOption(command, options->target.name);
  AddGpuOption(command, options->target.gpu);
  command.AddOption("--watts", options->watts, "A plain load that draws so much")
      .Check(NumberBetween(0, sim::kMaxDemand.value()));
  command.AddOption("--workload", options->workload, "A training job: resnet50, bert_qa, …");
  AddBatchSizeOption(command, options->batch_size);
  command
      .AddOption("--seconds", options->seconds,
                 "How long, in node time; without it until interrupted")
      .Check(NumberBetween(kShortestSeconds, kLongestSeconds));
  command.AddFlag("--progress", options->progress,
                  "Print how many steps are done, ten times a second: step 12.345");
  command.OnChosen([options, &action] { action = [options] { return RunLoad(*options); }; });
}

namespace {

constexpr double kLatestBeginning = 1e9;  // Seconds.
constexpr double kLeastProbability = 1e-6;

struct FaultOptions {
  SimTarget target;
  std::string kind;
  std::optional<double> at;
  std::optional<double> probability;
};

Status ApplyTiming(const FaultOptions& options, sim::Fault& fault) {
  if (options.at) fault.at = Seconds(*options.at);
  if (!options.probability) return Ok();
  if (!sim::HitsCalls(fault.kind)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--probability means nothing for {}: it concerns no single calls",
                             Quote(options.kind))};
  }
  fault.probability = *options.probability;
  return Ok();
}

Result<int> Clear(const FaultOptions& options) {
  if (options.at || options.probability) {
    return Error{ErrorCode::kInvalidArgument,
                 "clear takes neither --at nor --probability: it ends all faults at once"};
  }
  SystemClock clock;
  ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(clock));
  ZEUS_TRY(sim::SharedNode node, directory.Open(options.target.name, sim::Access::kWrite));
  ZEUS_RETURN_IF_ERROR(node.Update(options.target.gpu, [](sim::GpuCore& core) {
    core.ClearFaults();
    return Ok();
  }));
  fmt::print("GPU {} of node \"{}\" has no faults\n", options.target.gpu, node.name());
  return 0;
}

Result<int> Inject(const FaultOptions& options) {
  if (options.kind == "clear") return Clear(options);
  ZEUS_TRY(sim::Fault fault, sim::ParseFault(options.kind));
  ZEUS_RETURN_IF_ERROR(ApplyTiming(options, fault));
  if (auto checked = sim::CheckFault(fault); !checked.ok())
    return std::move(checked).error().While(fmt::format("bad fault {}", Quote(options.kind)));
  SystemClock clock;
  ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(clock));
  ZEUS_TRY(sim::SharedNode node, directory.Open(options.target.name, sim::Access::kWrite));
  ZEUS_RETURN_IF_ERROR(
      node.Update(options.target.gpu, [&](sim::GpuCore& core) { return core.InjectFault(fault); }));
  fmt::print("GPU {} of node \"{}\": {}\n", options.target.gpu, node.name(), options.kind);
  return 0;
}

}  // namespace

void AddSimFault(Verb sim, Action& action) {
  auto options = std::make_shared<FaultOptions>();
  const Verb command = sim.AddVerb("fault", "Let something go wrong on a simulated GPU");
  AddNameOption(command, options->target.name);
  AddGpuOption(command, options->target.gpu);
  command.AddOption("--kind", options->kind, sim::KnownFaults() + ", clear").Required();
  command.AddOption("--at", options->at, "Node time in seconds at which it begins (now)")
      .Check(NumberBetween(0, kLatestBeginning));
  command.AddOption("--probability", options->probability, "Share of calls that it hits (1)")
      .Check(NumberBetween(kLeastProbability, 1));
  command.OnChosen([options, &action] { action = [options] { return Inject(*options); }; });
}

namespace {

constexpr double kMaxMegahertz = 100'000;

struct PredictOptions {
  std::string gpu;
  std::string workload;
  unsigned batch_size = 0;
  std::optional<double> power_limit;
  std::optional<double> clock;  // MHz
  bool json = false;
};

Result<int> PrintPrediction(const PredictOptions& options) {
  ZEUS_TRY(const sim::GpuModel* model, sim::FindGpuModel(options.gpu));
  ZEUS_TRY(const sim::Workload* workload, sim::FindWorkload(options.workload));
  sim::KnobSettings knobs{.power_limit = model->default_limit, .clock_cap = std::nullopt};
  if (options.power_limit) knobs.power_limit = Watts(*options.power_limit);
  if (options.clock) knobs.clock_cap = Hertz::FromMega(*options.clock);
  ZEUS_TRY(const sim::OperatingPoint point,
           sim::Predict(*model, *workload, options.batch_size, knobs));
  const auto epochs = sim::MeanEpochsToTarget(*workload, options.batch_size);
  if (options.json) {
    PrintJson({{"time_per_epoch_seconds", point.time_per_epoch.count()},
               {"average_power_watts", point.average_power.value()},
               {"epochs_to_target_mean", epochs ? Json(*epochs) : Json()}});
    return 0;
  }
  fmt::print("{} on {}, batch size {}, {:g} W: {:.1f} s per epoch, {:.1f} W on average, {}\n",
             workload->name, model->id, options.batch_size, knobs.power_limit.value(),
             point.time_per_epoch.count(), point.average_power.value(),
             epochs ? fmt::format("{:.1f} epochs to the target", *epochs)
                    : std::string("never reaches the target"));
  return 0;
}

}  // namespace

void AddSimPredict(Verb sim, Action& action) {
  auto options = std::make_shared<PredictOptions>();
  const Verb command =
      sim.AddVerb("predict", "Print the prediction of the workload catalogue for a job on a GPU");
  command.AddOption("--gpu", options->gpu, "Model of the GPU: V100, A40, …").Required();
  command.AddOption("--workload", options->workload, "deepspeech2, bert_qa, …").Required();
  AddBatchSizeOption(command, options->batch_size).Required();
  command.AddOption("--power-limit", options->power_limit, "Watts (the model's default limit)")
      .Check(NumberBetween(1, sim::kMaxDemand.value()));
  command.AddOption("--clock", options->clock, "Highest graphics clock in MHz (not locked)")
      .Check(NumberBetween(1, kMaxMegahertz));
  AddJsonFlag(command, options->json);
  command.OnChosen(
      [options, &action] { action = [options] { return PrintPrediction(*options); }; });
}

}  // namespace zeus::cli
