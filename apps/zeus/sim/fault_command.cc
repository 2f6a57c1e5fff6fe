#include <fmt/format.h>

#include <memory>
#include <optional>

#include "apps/zeus/numbers.h"
#include "apps/zeus/sim/commands.h"
#include "zeus/base/text.h"
#include "zeus/device/sim/fault.h"

namespace zeus::cli {
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

}  // namespace zeus::cli
