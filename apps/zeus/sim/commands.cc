#include "apps/zeus/sim/commands.h"

#include <cstdint>

#include "apps/zeus/commands.h"
#include "apps/zeus/numbers.h"
#include "zeus/base/json.h"

namespace zeus::cli {

void AddNameOption(Verb command, std::string& name) {
  command.AddOption("--name", name, "Name of the simulated node; else ZEUS_SIM_NODE").ShowDefault();
}

void AddGpuOption(Verb command, unsigned& gpu) {
  command.AddOption("--gpu", gpu, "Index of the GPU")
      .Required()
      .Check(WholeNumberBetween(0, sim::kMaxGpusPerNode - 1));
}

Option AddBatchSizeOption(Verb command, unsigned& batch_size) {
  constexpr std::uint64_t kMaxBatchSize = 1 << 20;
  return command.AddOption("--batch-size", batch_size, "Samples per step of the training job")
      .Check(WholeNumberBetween(1, kMaxBatchSize));
}

void AddJsonFlag(Verb command, bool& json) {
  command.AddFlag("--json", json, "Print JSON instead of text");
}

Result<Json> DescribeNode(const sim::SharedNode& node) {
  Json gpus = Json::array();
  const Seconds now = node.Now();
  for (unsigned i = 0; i < node.gpu_count(); ++i) {
    ZEUS_TRY(const auto view, node.Read(i, now));
    gpus.push_back({{"index", i}, {"model", view.core.model().id}, {"uuid", view.core.uuid()}});
  }
  return Json{{"name", node.name()},
              {"state", "running"},
              {"gpus", std::move(gpus)},
              {"seed", node.seed()},
              {"time_scale", node.time_scale()},
              {"time_seconds", now.count()}};
}

void AddSimCommand(Verb app, Action& action) {
  const Verb sim = app.AddVerb("sim", "Simulated GPUs that every NVML client can see");
  sim.RequireVerb();
  AddSimStart(sim, action);
  AddSimStop(sim, action);
  AddSimList(sim, action);
  AddSimEnv(sim, action);
  AddSimLoad(sim, action);
  AddSimFault(sim, action);
  AddSimTruth(sim, action);
  AddSimPredict(sim, action);
}

}  // namespace zeus::cli
