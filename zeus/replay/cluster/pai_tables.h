#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "zeus/base/result.h"
#include "zeus/replay/cluster/cluster_trace.h"
#include "zeus/replay/input/row_problems.h"

// The public trace of Alibaba's GPU cluster (cluster-trace-gpu-v2020) as it comes: tables without
// header, whose columns a file of the same name and ".header" may list.
namespace zeus::replay {

struct PaiTrace {
  ClusterTrace trace{};
  // Jobs that are no part of it, for no fault of theirs.
  std::int64_t not_terminated = 0;  // Failed, or still running or waiting.
  std::int64_t without_group = 0;   // Their inst_id is not in the table of groups.
};

// Joins pai_job_table and pai_group_tag_table (.csv, also packed: .csv.xz, .csv.gz, .csv.zst) of a
// folder, keeps the jobs that terminated, and gives each group a workload by its mean runtime
// (AssignWorkloads). Rows that cannot be used are reported and left out. kInvalidArgument when
// nothing is left.
Result<PaiTrace> ReadPaiTables(const std::filesystem::path& folder,
                               std::span<const std::string> workloads, RowProblems& problems);

}  // namespace zeus::replay
