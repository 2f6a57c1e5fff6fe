#include "apps/zeus/sim/commands.h"

#include <cstdint>

#include "apps/zeus/numbers.h"

namespace zeus::cli {

void AddNameOption(CLI::App& command, std::string& name) {
  command.add_option("--name", name, "Name of the simulated node")->capture_default_str();
}

void AddGpuOption(CLI::App& command, unsigned& gpu) {
  command.add_option("--gpu", gpu, "Index of the GPU")
      ->required()
      ->check(WholeNumberBetween(0, sim::kMaxGpusPerNode - 1));
}

void AddBatchSizeOption(CLI::App& command, unsigned& batch_size) {
  constexpr std::uint64_t kMaxBatchSize = 1 << 20;
  command.add_option("--batch-size", batch_size, "Samples per step of the training job")
      ->check(WholeNumberBetween(1, kMaxBatchSize));
}

void AddJsonFlag(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "Print JSON instead of text");
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

}  // namespace zeus::cli
