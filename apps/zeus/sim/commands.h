#pragma once

#include <string>

#include "apps/zeus/command.h"
#include "apps/zeus/output.h"
#include "zeus/base/json.h"
#include "zeus/device/sim/node_directory.h"

namespace zeus::cli {

void AddSimStart(CLI::App& sim, Action& action);
void AddSimStop(CLI::App& sim, Action& action);
void AddSimList(CLI::App& sim, Action& action);
void AddSimEnv(CLI::App& sim, Action& action);
void AddSimLoad(CLI::App& sim, Action& action);
void AddSimFault(CLI::App& sim, Action& action);
void AddSimTruth(CLI::App& sim, Action& action);
void AddSimPredict(CLI::App& sim, Action& action);

// Which node, and for some verbs which of its GPUs.
struct SimTarget {
  std::string name{sim::kDefaultNodeName};
  unsigned gpu = 0;
};
void AddNameOption(CLI::App& command, std::string& name);
void AddGpuOption(CLI::App& command, unsigned& gpu);
void AddBatchSizeOption(CLI::App& command, unsigned& batch_size);
void AddJsonFlag(CLI::App& command, bool& json);

// {"name", "state", "gpus": [{"index", "model", "uuid"}], "seed", "time_scale", "time_seconds"}
Result<Json> DescribeNode(const sim::SharedNode& node);

}  // namespace zeus::cli
