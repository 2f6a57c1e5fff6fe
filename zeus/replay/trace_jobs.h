#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/replay/input/row_problems.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay {

// The jobs of the Zeus paper (NSDI'23) on one GPU model, as its traces recorded them:
// summary_train.csv and summary_power_<GPU model>.csv, also packed (.xz, .gz, .zst). The traces do
// not ship. In the order of PaperWorkloads(), without those that have no rows. Bad rows are left
// out and reported, those of a file once however often it is read with the same `problems`; batch
// sizes of which one of the two files knows nothing are left out, as ReplayJob::remarks say.
// kNotFound when there are no such files, or no rows of any workload.
Result<std::vector<ReplayJob>> ReadReplayJobs(const std::filesystem::path& directory,
                                              std::string_view gpu_model, double eta,
                                              RowProblems& problems);

// Bad rows are refused.
Result<std::vector<ReplayJob>> ReadReplayJobs(const std::filesystem::path& directory,
                                              std::string_view gpu_model, double eta);

}  // namespace zeus::replay
