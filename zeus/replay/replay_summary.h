#pragma once

#include <cstdint>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/statistics.h"
#include "zeus/replay/contender.h"
#include "zeus/replay/job_replay.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay {

// The figures by which contenders are compared. Costs are in units of the expected cost of the
// oracle's choice, and NaN if there is no oracle (ReplayJob::HasOracle()).
struct ReplaySummary {
  double last_five_energy = 0.0;  // Relative to the default batch size at full power.
  double last_five_time = 0.0;    // Relative to the default batch size at full power.
  double last_five_cost = 0.0;
  double regret_of_50 = 0.0;  // Over the first 50 recurrences, or over all if there are fewer.
  double regret = 0.0;        // Over all recurrences.
  Usage usage{};              // Over all recurrences.
  std::int64_t runs = 0;      // Attempts that were begun.
  std::int64_t stopped = 0;   // Begun attempts that did not reach the target.
  double unfinished = 0.0;    // Recurrences without an attempt that reached the target.
};

// Computes a summary recurrence by recurrence. Not thread-safe.
class ReplaySummarizer {
 public:
  // `recurrences` is the number of calls of Add() that will follow.
  ReplaySummarizer(const ReplayJob& job, std::int64_t recurrences);

  void Add(const ReplayedRecurrence& recurrence);

  const ReplaySummary& summary() const { return summary_; }

 private:
  Usage usual_;
  Joules least_;
  std::int64_t recurrences_;
  std::int64_t added_ = 0;
  ReplaySummary summary_{};
};

// Replays a job from its first recurrence with this seed.
Result<ReplaySummary> ReplaySeed(const ReplayJob& job, const ContenderSpec& spec,
                                 std::uint64_t seed, std::int64_t recurrences);

// Returns one summary for each of the seeds 0 to seeds - 1, each over `job.recurrences()`
// recurrences.
Result<std::vector<ReplaySummary>> ReplaySeeds(const ReplayJob& job, const ContenderSpec& spec,
                                               int seeds);

// Returns mean and spread of one figure over the summaries.
SampleSummary SummarizeFigure(const std::vector<ReplaySummary>& summaries,
                              double ReplaySummary::*figure);

}  // namespace zeus::replay
