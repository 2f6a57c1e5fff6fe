#pragma once

#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay {

// Returns the six jobs of the paper computed from the workload catalogue that simulated GPUs run
// (docs/workload-catalogue.md), for users without traces and for GPU models that were never
// recorded. The numbers of epochs are drawn with a fixed seed, so every call returns the same jobs.
// kNotFound lists the models of the catalogue.
Result<std::vector<ReplayJob>> CatalogueJobs(std::string_view gpu_model, double eta);

// Returns the power limits of a model: the lowest one, then steps of 25 W as in the traces, and
// always the greatest one.
std::vector<Watts> CatalogueLimits(const sim::GpuModel& model);

}  // namespace zeus::replay
