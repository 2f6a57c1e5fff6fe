#include <fmt/format.h>

#include <memory>

#include "apps/zeus/output.h"
#include "apps/zeus/sim/commands.h"
#include "zeus/base/json.h"

namespace zeus::cli {
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

}  // namespace zeus::cli
