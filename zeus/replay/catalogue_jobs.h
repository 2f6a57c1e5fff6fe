#pragma once

#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay {

// The same jobs as the traces have, from the workload catalogue that simulated GPUs run
// (docs/workload-catalogue.md): for those who have no traces, and for GPU models that were never
// recorded. kNotFound lists the models. The numbers of epochs are drawn, the same on every call.
Result<std::vector<ReplayJob>> CatalogueJobs(std::string_view gpu_model, double eta);

// Power limits of a model: from the lowest, in steps as the traces have them; the greatest is
// always one of them.
std::vector<Watts> CatalogueLimits(const sim::GpuModel& model);

}  // namespace zeus::replay
