#include <fmt/format.h>

#include <algorithm>
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
#include "zeus/base/text.h"
#include "zeus/recording/replay_node.h"
#include "zeus/recording/summary.h"

namespace zeus::cli {
namespace {

struct StartOptions {
  std::string name = sim::ChosenNodeName();
  std::string gpus;
  std::string recording;
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

// The folder of all nodes.
std::filesystem::path Folder(const sim::NodeDirectory& directory, const std::string& name) {
  return directory.NodeFile(name).parent_path();
}

Json DescribeReplay(const std::string& name, const recording::ReplayNode& node) {
  const recording::Summary summary = recording::Summarise(node.recording());
  Json counts = Json::array();
  for (const recording::AnswerCount& count : node.Counts())
    counts.push_back({{"function", std::string(recording::Functions()[count.function].name)},
                      {"in_order", count.in_order},
                      {"nearest", count.nearest},
                      {"unknown", count.unknown}});
  Json description = ToJson(node.recording(), summary);
  return {{"name", name},
          {"state", "replaying"},
          {"gpus", description.at("gpus")},
          {"calls", summary.calls},
          {"duration_seconds", summary.duration.count()},
          {"answers", std::move(counts)}};
}

// "17 answers as recorded, 3 nearest in time, 1 unknown (nvmlDeviceGetFanSpeed)"
std::string AnswersText(const recording::ReplayNode& node) {
  std::uint64_t in_order = 0;
  std::uint64_t nearest = 0;
  std::uint64_t unknown = 0;
  std::string names;
  for (const recording::AnswerCount& count : node.Counts()) {
    in_order += count.in_order;
    nearest += count.nearest;
    unknown += count.unknown;
    if (count.unknown > 0)
      names += fmt::format("{}{}", names.empty() ? "" : ", ",
                           recording::Functions()[count.function].name);
  }
  return fmt::format("{} answers as recorded, {} nearest in time, {} never recorded{}", in_order,
                     nearest, unknown, names.empty() ? "" : fmt::format(" ({})", names));
}

Result<int> StartReplay(const StartOptions& options) {
  SystemClock clock;
  ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(clock));
  if (directory.Open(options.name, sim::Access::kRead).ok())
    return Error{ErrorCode::kUnavailable,
                 fmt::format("a simulated node named \"{}\" is running already; stop it with: zeus "
                             "sim stop --name {}",
                             options.name, options.name)};
  ZEUS_TRY(const auto node, recording::ReplayNode::Create(Folder(directory, options.name),
                                                          options.name, options.recording));
  if (options.json) {
    PrintJson(DescribeReplay(options.name, *node));
    return 0;
  }
  const recording::Summary summary = recording::Summarise(node->recording());
  fmt::print("simulated node \"{}\" replays {}: {} GPUs, {} calls, {:.1f} s\n", options.name,
             Printable(options.recording), summary.gpus.size(), summary.calls,
             summary.duration.count());
  fmt::print("see it from any NVML client: eval \"$(zeus sim env --name {})\"\n", options.name);
  return 0;
}

Result<int> StopReplay(const std::filesystem::path& folder, const std::string& name) {
  std::string answers = "its file was damaged";
  if (const auto node = recording::ReplayNode::Open(folder, name); node.ok())
    answers = AnswersText(*node.value());
  ZEUS_RETURN_IF_ERROR(recording::ReplayNode::Remove(folder, name));
  fmt::print("replay \"{}\" is stopped: {}\n", name, answers);
  return 0;
}

Result<int> Start(const StartOptions& options) {
  if (options.gpus.empty() == options.recording.empty())
    return InvalidArgument("say what to start: either --gpus 4xV100 or --recording FILE");
  if (!options.recording.empty()) return StartReplay(options);
  SystemClock clock;
  ZEUS_TRY(const sim::NodeSpec spec, MakeSpec(options));
  ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(clock));
  if (recording::ReplayNode::Exists(Folder(directory, options.name), options.name))
    return Error{ErrorCode::kUnavailable,
                 fmt::format("a replay named \"{}\" runs already; stop it with: zeus sim stop "
                             "--name {}",
                             options.name, options.name)};
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
  const std::filesystem::path folder = Folder(directory, name);
  if (recording::ReplayNode::Exists(folder, name)) return StopReplay(folder, name);
  ZEUS_RETURN_IF_ERROR(directory.Remove(name));
  fmt::print("simulated node \"{}\" is stopped\n", name);
  return 0;
}

}  // namespace

void AddSimStart(Verb sim, Action& action) {
  auto options = std::make_shared<StartOptions>();
  const Verb command = sim.AddVerb("start", "Start a simulated node");
  AddNameOption(command, options->name);
  const Option gpus = command.AddOption("--gpus", options->gpus, "Its GPUs, e.g. 4xV100,2xA100");
  command
      .AddOption("--recording", options->recording,
                 "Replay what zeus record has written, instead of simulating")
      .Excludes(gpus);
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
    if (node.at("state") == "replaying") {
      PrintText(fmt::format("{:<16} {}\n", name, node.at("reason").get<std::string>()));
      continue;
    }
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
  const std::filesystem::path folder = Folder(directory, "default");
  for (const std::string& name : recording::ReplayNode::List(folder)) {
    const auto node = recording::ReplayNode::Open(folder, name);
    nodes.push_back(node.ok() ? DescribeReplay(name, *node.value()) : Unusable(name, node.error()));
    if (node.ok() && !json) nodes.back()["reason"] = "a replay: " + AnswersText(*node.value());
  }
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
  return (library.parent_path().parent_path() / "sim/bin").string();
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
  const std::string text = ours.string();
  if (!text.ends_with("/zeus/sim/libnvidia-ml.so.1") &&
      !text.ends_with("/zeus/replay/libnvidia-ml.so.1"))
    return 0;
  fmt::print("unset ZEUS_NVML_LIBRARY\n");
  PrintWithoutFolder("PATH", ProgramFolder(ours));
  PrintWithoutFolder("LD_LIBRARY_PATH", ours.parent_path().string());
  return 0;
}

Status CheckNode(const sim::NodeDirectory& directory, const std::string& name) {
  ZEUS_TRY(const sim::SharedNode node, directory.Open(name, sim::Access::kRead));
  return Ok();
}

Result<int> PrintEnvironment(const std::string& name) {
  SystemClock clock;
  ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(clock));
  // A wrong name is reported here; otherwise it would show up only later, as a driver that is not
  // loaded.
  const bool replays = recording::ReplayNode::Exists(Folder(directory, name), name);
  if (!replays) ZEUS_RETURN_IF_ERROR(CheckNode(directory, name));
  ZEUS_TRY(const auto library,
           FindCompanion(replays ? "zeus/replay/libnvidia-ml.so.1" : "zeus/sim/libnvidia-ml.so.1"));
  if (const char* place = std::getenv("ZEUS_SIM_DIR"); place != nullptr && *place != '\0')
    // The path is absolute, because the user may evaluate the output in another folder.
    fmt::print("export ZEUS_SIM_DIR={}\n", ShellQuote(std::filesystem::absolute(place).string()));
  fmt::print("export ZEUS_SIM_NODE={}\n", ShellQuote(name));
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
  std::optional<double> every{};  // Seconds.
};

Result<Json> TruthOf(const sim::SharedNode& node) {
  const Seconds now = node.Now();
  Json gpus = Json::array();
  for (unsigned i = 0; i < node.gpu_count(); ++i) {
    ZEUS_TRY(const auto view, node.Read(i, now));
    gpus.push_back({{"index", i},
                    {"uuid", view.core.uuid()},
                    {"energy_joules", view.core.exact_energy().value()},
                    {"power_watts", view.core.exact_power().value()}});
  }
  return gpus;
}

// Prints a line each time, until somebody ends the program.
Result<int> FollowTruth(const sim::SharedNode& node, Seconds every, Clock& clock) {
  for (TimePoint next = clock.Now();; next = std::max(next + every, clock.Now())) {
    clock.SleepUntil(next);
    ZEUS_TRY(const Json gpus, TruthOf(node));
    PrintText(JsonText(gpus) + "\n");
    ZEUS_RETURN_IF_ERROR(FlushOutput());
  }
}

Result<int> PrintTruth(const TruthOptions& options) {
  SystemClock clock;
  ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(clock));
  ZEUS_TRY(const sim::SharedNode node, directory.Open(options.name, sim::Access::kRead));
  if (options.every) return FollowTruth(node, Seconds(*options.every), clock);
  ZEUS_TRY(const Json gpus, TruthOf(node));
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
  command
      .AddOption("--every", options->every,
                 "Go on, and print a line of JSON each time so many seconds have passed")
      .Check(NumberBetween(0.001, 3600))
      .TypeName("SECONDS");
  command.OnChosen([options, &action] { action = [options] { return PrintTruth(*options); }; });
}

}  // namespace zeus::cli
