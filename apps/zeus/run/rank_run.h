#pragma once

#include "apps/zeus/run/run_options.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// `zeus run` as one of several ranks that a launcher started; options.place is set. Two processes
// do the work: this one runs the command and ends when it ends, and the witness measures the node,
// meets the other ranks, and writes the report where it falls to it. Launchers kill a rank some
// milliseconds after they have asked it to end, too soon to measure anything; the witness is in a
// session of its own, which they do not know. To be called before the first thread.
//
// Returns the exit code of the command. Errors are those of the options, of the witness before the
// command runs, and of Child::Start().
Result<int> RunAsRank(const RunOptions& options);

}  // namespace zeus::cli
