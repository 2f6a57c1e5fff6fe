#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "apps/zeus/numbers.h"
#include "apps/zeus/sim/commands.h"
#include "zeus/base/json.h"

namespace zeus::cli {
namespace {

struct StartOptions {
  std::string name = sim::ChosenNodeName();
  std::string gpus;
  std::uint64_t seed = 0;
  double time_scale = 1.0;
  std::optional<double> ambient;
  bool json = false;
};

// Limits of the ambient temperature in degrees Celsius.
constexpr double kColdest = -50;
constexpr double kHottest = 80;

Result<sim::NodeSpec> MakeSpec(const StartOptions& options) {
  sim::NodeSpec spec;
  ZEUS_TRY(spec.gpus, sim::ParseGpuList(options.gpus));
  spec.seed = options.seed;
  spec.time_scale = options.time_scale;
  if (options.ambient) spec.ambient = Celsius(*options.ambient);
  return spec;
}

Result<int> Start(const StartOptions& options) {
  SystemClock clock;
  ZEUS_TRY(const sim::NodeSpec spec, MakeSpec(options));
  ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(clock));
  ZEUS_TRY(const sim::SharedNode node, directory.Create(options.name, spec));
  if (options.json) {
    ZEUS_TRY(const Json description, DescribeNode(node));
    PrintJson(description);
    return 0;
  }
  fmt::print("simulated node \"{}\" is running: {}, seed {}, time scale {}\n", options.name,
             sim::FormatGpuList(spec.gpus), spec.seed, spec.time_scale);
  fmt::print("see it from any NVML client: eval \"$(zeus sim env --name {})\"\n", options.name);
  return 0;
}

Result<int> Stop(const std::string& name) {
  SystemClock clock;
  ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(clock));
  ZEUS_RETURN_IF_ERROR(directory.Remove(name));
  fmt::print("simulated node \"{}\" is stopped\n", name);
  return 0;
}

}  // namespace

void AddSimStart(Verb sim, Action& action) {
  auto options = std::make_shared<StartOptions>();
  const Verb command = sim.AddVerb("start", "Start a simulated node");
  AddNameOption(command, options->name);
  command.AddOption("--gpus", options->gpus, "Its GPUs, e.g. 4xV100,2xA100").Required();
  command.AddOption("--seed", options->seed, "Sensor errors, phases and UUIDs follow from it")
      .Check(WholeNumberBetween(0, std::numeric_limits<std::uint64_t>::max()))
      .ShowDefault();
  command.AddOption("--time-scale", options->time_scale, "Node seconds per real second")
      .Check(NumberBetween(sim::kMinTimeScale, sim::kMaxTimeScale))
      .ShowDefault();
  command.AddOption("--ambient", options->ambient, "Temperature of the air in degrees Celsius")
      .Check(NumberBetween(kColdest, kHottest));
  AddJsonFlag(command, options->json);
  command.OnChosen([options, &action] { action = [options] { return Start(*options); }; });
}

void AddSimStop(Verb sim, Action& action) {
  auto name = std::make_shared<std::string>(sim::ChosenNodeName());
  const Verb command = sim.AddVerb("stop", "Stop a simulated node and remove it from memory");
  AddNameOption(command, *name);
  command.OnChosen([name, &action] { action = [name] { return Stop(*name); }; });
}

}  // namespace zeus::cli
