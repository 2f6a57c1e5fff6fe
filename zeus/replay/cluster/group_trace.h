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

// Reads and writes the trace of groups that the evaluation of the Zeus paper uses
// (docs/formats.md): a row per job with group, start_time, end_time, dataset and runtime_ratio.
namespace zeus::replay {

// Unusable rows are left out, rows that start before the previous one of their group are put in
// order; `problems` gets both. kInvalidArgument when no usable row is left.
Result<ClusterTrace> ReadGroupTrace(const std::filesystem::path& path, RowProblems& problems);
Result<ClusterTrace> ReadGroupTrace(TextSource source, RowProblems& problems);

// Passes the text that ReadGroupTrace() reads to `write` in parts, because a trace is too large to
// be in memory twice. Stops at the first error of `write` and returns it.
Status WriteGroupTrace(const ClusterTrace& trace,
                       const std::function<Status(std::string_view part)>& write);

}  // namespace zeus::replay
