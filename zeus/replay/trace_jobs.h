#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay {

// The six jobs of the Zeus paper (NSDI'23) on one GPU model, as its traces recorded them:
// summary_train.csv and summary_power_<GPU model>.csv. The traces do not ship.
Result<std::vector<ReplayJob>> ReadReplayJobs(const std::filesystem::path& directory,
                                              std::string_view gpu_model, double eta);

}  // namespace zeus::replay
