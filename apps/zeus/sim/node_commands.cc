#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <system_error>

#include "apps/zeus/companion.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
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

namespace {

Json Unusable(const std::string& name, const Error& error) {
  return {{"name", name}, {"state", "unusable"}, {"reason", error.message}};
}

Json Describe(const sim::NodeDirectory& directory, const sim::NodeDirectory::Entry& entry) {
  if (!entry.state.ok()) return Unusable(entry.name, entry.state.error());
  const auto node = directory.Open(entry.name, sim::Access::kRead);
  if (!node.ok()) return Unusable(entry.name, node.error());
  auto description = DescribeNode(node.value());
  return description.ok() ? std::move(description).value()
                          : Unusable(entry.name, description.error());
}

std::string Models(const Json& gpus) {
  std::vector<const sim::GpuModel*> models;
  for (const Json& gpu : gpus) {
    const auto model = sim::FindGpuModel(gpu.at("model").get<std::string>());
    if (model.ok()) models.push_back(model.value());
  }
  return sim::FormatGpuList(models);
}

void PrintTable(const Json& nodes) {
  PrintText(fmt::format("{:<16} {:<24} {:>10} {:>10} {:>14}\n", "NAME", "GPUS", "SEED",
                        "TIME SCALE", "NODE TIME [s]"));
  for (const Json& node : nodes) {
    const auto name = node.at("name").get<std::string>();
    if (node.at("state") != "running") {
      PrintText(fmt::format("{:<16} {}\n", name, node.at("reason").get<std::string>()));
      continue;
    }
    PrintText(fmt::format("{:<16} {:<24} {:>10} {:>10g} {:>14.1f}\n", name, Models(node.at("gpus")),
                          node.at("seed").get<std::uint64_t>(), node.at("time_scale").get<double>(),
                          node.at("time_seconds").get<double>()));
  }
}

Result<int> List(bool json) {
  SystemClock clock;
  ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(clock));
  Json nodes = Json::array();
  for (const auto& entry : directory.List()) nodes.push_back(Describe(directory, entry));
  if (json) {
    PrintJson(nodes);
    return 0;
  }
  if (nodes.empty()) {
    fmt::print("no simulated node is running; start one with: zeus sim start --gpus 4xV100\n");
    return 0;
  }
  PrintTable(nodes);
  return 0;
}

}  // namespace

void AddSimList(Verb sim, Action& action) {
  auto json = std::make_shared<bool>(false);
  const Verb command = sim.AddVerb("list", "List the simulated nodes of this machine");
  AddJsonFlag(command, *json);
  command.OnChosen([json, &action] { action = [json] { return List(*json); }; });
}

namespace {

// A shell takes everything between single quotes literally, except the quote itself.
std::string ShellQuote(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// nvidia-smi for simulated GPUs lies in this folder beside the library.
std::string ProgramFolder(const std::filesystem::path& library) {
  return (library.parent_path() / "bin").string();
}

// Returns the folders of a search path without `ours`.
std::string WithoutFolder(std::string_view folders, const std::string& ours) {
  std::string rest;
  while (true) {
    const std::size_t colon = folders.find(':');
    const std::string_view folder = folders.substr(0, colon);
    if (folder != ours && !folder.empty()) rest += (rest.empty() ? "" : ":") + std::string(folder);
    if (colon == std::string_view::npos) return rest;
    folders.remove_prefix(colon + 1);
  }
}

void PrintWithoutFolder(const char* variable, const std::string& ours) {
  const char* const folders = std::getenv(variable);
  if (folders == nullptr) return;
  const std::string rest = WithoutFolder(folders, ours);
  if (rest.empty())
    fmt::print("unset {}\n", variable);
  else
    fmt::print("export {}={}\n", variable, ShellQuote(rest));
}

// Prints the commands that undo those of PrintEnvironment(). Neither the node nor the library has
// to be there any more. Variables that something else has set stay.
Result<int> PrintUnset() {
  fmt::print("unset ZEUS_SIM_NODE\n");
  const char* const library = std::getenv("ZEUS_NVML_LIBRARY");
  const std::filesystem::path ours = library != nullptr ? library : "";
  if (!ours.string().ends_with("/zeus/sim/libnvidia-ml.so.1")) return 0;
  fmt::print("unset ZEUS_NVML_LIBRARY\n");
  PrintWithoutFolder("PATH", ProgramFolder(ours));
  PrintWithoutFolder("LD_LIBRARY_PATH", ours.parent_path().string());
  return 0;
}

Result<int> PrintEnvironment(const std::string& name) {
  SystemClock clock;
  ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(clock));
  // A wrong name is reported here; otherwise it would show up only later, as a driver that is not
  // loaded.
  ZEUS_TRY(const sim::SharedNode node, directory.Open(name, sim::Access::kRead));
  ZEUS_TRY(const auto library, FindCompanion("zeus/sim/libnvidia-ml.so.1"));
  if (const char* place = std::getenv("ZEUS_SIM_DIR"); place != nullptr && *place != '\0')
    // The path is absolute, because the user may evaluate the output in another folder.
    fmt::print("export ZEUS_SIM_DIR={}\n", ShellQuote(std::filesystem::absolute(place).string()));
  fmt::print("export ZEUS_SIM_NODE={}\n", ShellQuote(node.name()));
  fmt::print("export ZEUS_NVML_LIBRARY={}\n", ShellQuote(library.string()));
  fmt::print("export LD_LIBRARY_PATH={}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\n",
             ShellQuote(library.parent_path().string()));
  fmt::print("export PATH={}${{PATH:+:$PATH}}\n", ShellQuote(ProgramFolder(library)));
  return 0;
}

}  // namespace

void AddSimEnv(Verb sim, Action& action) {
  auto name = std::make_shared<std::string>(sim::ChosenNodeName());
  const Verb command = sim.AddVerb(
      "env", "Print the environment in which NVML clients see the node: eval \"$(zeus sim env)\"");
  AddNameOption(command, *name);
  auto unset = std::make_shared<bool>(false);
  command.AddFlag("--unset", *unset,
                  "Print the commands that undo it: eval \"$(zeus sim env --unset)\"");
  command.OnChosen([name, unset, &action] {
    action = [name, unset] { return *unset ? PrintUnset() : PrintEnvironment(*name); };
  });
}

namespace {

struct TruthOptions {
  std::string name = sim::ChosenNodeName();
  bool json = false;
};

Result<int> PrintTruth(const TruthOptions& options) {
  SystemClock clock;
  ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(clock));
  ZEUS_TRY(const sim::SharedNode node, directory.Open(options.name, sim::Access::kRead));
  const Seconds now = node.Now();
  Json gpus = Json::array();
  for (unsigned i = 0; i < node.gpu_count(); ++i) {
    ZEUS_TRY(const auto view, node.Read(i, now));
    gpus.push_back({{"index", i},
                    {"uuid", view.core.uuid()},
                    {"energy_joules", view.core.exact_energy().value()},
                    {"power_watts", view.core.exact_power().value()}});
  }
  if (options.json) {
    PrintJson(gpus);
    return 0;
  }
  fmt::print("{:>3}  {:<40} {:>16} {:>10}\n", "GPU", "UUID", "ENERGY [J]", "POWER [W]");
  for (const Json& gpu : gpus) {
    fmt::print("{:>3}  {:<40} {:>16.3f} {:>10.3f}\n", gpu.at("index").get<unsigned>(),
               gpu.at("uuid").get<std::string>(), gpu.at("energy_joules").get<double>(),
               gpu.at("power_watts").get<double>());
  }
  return 0;
}

}  // namespace

void AddSimTruth(Verb sim, Action& action) {
  auto options = std::make_shared<TruthOptions>();
  const Verb command = sim.AddVerb(
      "truth", "Print the exact energy and power that no sensor shows, to score estimates");
  AddNameOption(command, options->name);
  AddJsonFlag(command, options->json);
  command.OnChosen([options, &action] { action = [options] { return PrintTruth(*options); }; });
}

}  // namespace zeus::cli
