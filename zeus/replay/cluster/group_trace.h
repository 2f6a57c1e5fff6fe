#pragma once

#include <filesystem>
#include <functional>
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

// The text that ReadGroupTrace() reads, handed to `take` in parts: a trace is too large to hold in
// memory twice. Ends at the first part that is not taken.
Status WriteGroupTrace(const ClusterTrace& trace,
                       const std::function<Status(std::string_view part)>& take);

}  // namespace zeus::replay
