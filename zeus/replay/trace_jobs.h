#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/replay/input/row_problems.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay {

// Reads the jobs of the Zeus paper (NSDI'23) on one GPU model from its published traces:
// summary_train.csv and summary_power_<GPU model>.csv, also compressed (.xz, .gz, .zst). The traces
// are not part of the repository. The jobs come in the order of PaperWorkloads(), without those
// that have no rows. Bad rows are left out and reported, once per file however often it is read
// with the same `problems`. A batch size that only one of the two files has is left out, and
// ReplayJob::remarks says so. kNotFound when the files are missing or have no rows of any workload.
Result<std::vector<ReplayJob>> ReadReplayJobs(const std::filesystem::path& directory,
                                              std::string_view gpu_model, double eta,
                                              RowProblems& problems);

// As above, but returns an error for bad rows.
Result<std::vector<ReplayJob>> ReadReplayJobs(const std::filesystem::path& directory,
                                              std::string_view gpu_model, double eta);

}  // namespace zeus::replay
