#pragma once

#include <string>

#include "apps/zeus/commands.h"
#include "apps/zeus/output.h"
#include "zeus/base/json_fwd.h"
#include "zeus/device/sim/node_directory.h"

namespace zeus::cli {

void AddSimStart(Verb sim, Action& action);
void AddSimStop(Verb sim, Action& action);
void AddSimList(Verb sim, Action& action);
void AddSimEnv(Verb sim, Action& action);
void AddSimLoad(Verb sim, Action& action);
void AddSimFault(Verb sim, Action& action);
void AddSimTruth(Verb sim, Action& action);
void AddSimPredict(Verb sim, Action& action);

// The node and, for some verbs, one of its GPUs.
struct SimTarget {
  std::string name = sim::ChosenNodeName();
  unsigned gpu = 0;
};
void AddNameOption(Verb command, std::string& name);
void AddGpuOption(Verb command, unsigned& gpu);
Option AddBatchSizeOption(Verb command, unsigned& batch_size);
void AddJsonFlag(Verb command, bool& json);

// Returns {"name", "state", "gpus": [{"index", "model", "uuid"}], "seed", "time_scale",
// "time_seconds"}.
Result<Json> DescribeNode(const sim::SharedNode& node);

}  // namespace zeus::cli
