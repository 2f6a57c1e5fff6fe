#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/replay/cluster/cluster_trace.h"
#include "zeus/replay/input/row_problems.h"
#include "zeus/replay/input/text_source.h"

// The trace of groups that the evaluation of the Zeus paper reads (docs/formats.md): a row per job
// with group, start_time, end_time, dataset and runtime_ratio.
namespace zeus::replay {

// Rows that cannot be used are reported and left out; those of a group that come before an earlier
// one are reported and put in order. kInvalidArgument when nothing is left.
Result<ClusterTrace> ReadGroupTrace(const std::filesystem::path& path, RowProblems& problems);
Result<ClusterTrace> ReadGroupTrace(TextSource source, RowProblems& problems);

// Replaces the file.
Status WriteGroupTrace(const ClusterTrace& trace, const std::filesystem::path& path);

}  // namespace zeus::replay
