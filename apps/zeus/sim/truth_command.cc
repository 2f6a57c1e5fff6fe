#include <fmt/format.h>

#include <memory>

#include "apps/zeus/sim/commands.h"
#include "zeus/base/json.h"

namespace zeus::cli {
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
