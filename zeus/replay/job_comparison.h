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
  int seeds = 50;                // From 0.
  std::int64_t recurrences = 0;  // Of each seed; 0: as many as the paper takes (2 |B| |P|).
  bool histories = false;        // Keep every run.
  int threads = 1;               // Results do not depend on it.
  // Called from any of the threads after each seed; may be empty.
  std::function<void()> seed_done{};
};

// One contender with one seed.
struct SeedReplay {
  ReplaySummary summary{};
  std::vector<double> regret{};        // Cumulative, at JobComparison::marks.
  std::vector<ReplayedRun> history{};  // If asked for.
};

struct ContenderReplays {
  ContenderSpec spec{};
  std::vector<SeedReplay> seeds{};

  std::vector<ReplaySummary> Summaries() const;
};

// What contenders make of one job.
struct JobComparison {
  const ReplayJob* job = nullptr;
  std::int64_t recurrences = 0;
  std::vector<std::int64_t> marks{};  // Recurrences after which regret is noted: all, or some 300.
  std::vector<ContenderReplays> contenders{};
};

// `job` must outlive the comparison. kInvalidArgument when a contender makes no sense.
Result<JobComparison> Compare(const ReplayJob& job, const ComparisonRequest& request);

// The fixed interface of `zeus replay job --json` (docs/replay.md).
Json ToJson(const JobComparison& comparison);

// The comparison for people: a table, cumulative regret over recurrences, and what the last five of
// them take.
report::Report MakeReport(const JobComparison& comparison);

}  // namespace zeus::replay
