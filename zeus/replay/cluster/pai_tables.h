#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "zeus/base/result.h"
#include "zeus/replay/cluster/cluster_trace.h"
#include "zeus/replay/input/csv_reader.h"

// Reads the public trace of Alibaba's GPU cluster (cluster-trace-gpu-v2020) as it is published:
// tables without a header line, whose columns may be listed in a file of the same name that ends in
// ".header".
namespace zeus::replay {

struct PaiTrace {
  ClusterTrace trace{};
  // Counts of jobs that are not part of the trace although their rows are well-formed.
  std::int64_t not_terminated = 0;  // Failed, still running, or waiting.
  std::int64_t without_group = 0;   // The table of groups lacks their inst_id.
};

// Joins pai_job_table and pai_group_tag_table (.csv, or compressed: .csv.xz, .csv.gz, .csv.zst) of
// a folder, keeps the jobs that terminated, and gives each group a workload by its mean runtime
// (AssignWorkloads). Unusable rows are reported and left out. kInvalidArgument when no job is left.
Result<PaiTrace> ReadPaiTables(const std::filesystem::path& folder,
                               std::span<const std::string> workloads, RowProblems& problems);

}  // namespace zeus::replay
