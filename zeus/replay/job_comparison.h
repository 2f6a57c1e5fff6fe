#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/replay/contender.h"
#include "zeus/replay/job_replay.h"
#include "zeus/replay/replay_job.h"
#include "zeus/replay/replay_summary.h"
#include "zeus/report/figure.h"

namespace zeus::replay {

struct ComparisonRequest {
  std::vector<ContenderSpec> contenders{};
  int seeds = 50;                // Seeds 0 to seeds - 1 are replayed.
  std::int64_t recurrences = 0;  // Per seed; 0: as many as the paper takes (2 |B| |P|).
  bool histories = false;        // Whether every run is kept.
  int threads = 1;               // Does not affect the results.
  // Called after each seed from any of the threads; may be empty.
  std::function<void()> seed_done{};
};

// One contender with one seed.
struct SeedReplay {
  ReplaySummary summary{};
  std::vector<double> regret{};        // Cumulative, at the recurrences of JobComparison::marks.
  std::vector<ReplayedRun> history{};  // Empty unless ComparisonRequest::histories is set.
};

struct ContenderReplays {
  ContenderSpec spec{};
  std::vector<SeedReplay> seeds{};

  std::vector<ReplaySummary> Summaries() const;
};

// The replays of one job under several contenders.
struct JobComparison {
  const ReplayJob* job = nullptr;
  std::int64_t recurrences = 0;
  // Recurrences after which regret is noted: all of them, or about 300.
  std::vector<std::int64_t> marks{};
  std::vector<ContenderReplays> contenders{};
};

// `job` must outlive the comparison. kInvalidArgument names the contender that is invalid.
Result<JobComparison> Compare(const ReplayJob& job, const ComparisonRequest& request);

// Returns the documented format of `zeus replay job --json` (docs/replay.md).
Json ToJson(const JobComparison& comparison);

// Renders the comparison for people: a table, cumulative regret over the recurrences, and the usage
// of the last five recurrences.
report::Report MakeReport(const JobComparison& comparison);

}  // namespace zeus::replay
