#pragma once

#include <cstdint>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/statistics.h"
#include "zeus/replay/contender.h"
#include "zeus/replay/job_replay.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay {

// What contenders are compared by. Costs in units of the expected cost of the oracle's choice; not
// a number where there is no oracle (ReplayJob::HasOracle()).
struct ReplaySummary {
  double last_five_energy = 0.0;  // Of that of the default batch size at full power.
  double last_five_time = 0.0;    // Likewise.
  double last_five_cost = 0.0;
  double regret_of_50 = 0.0;  // Of the first 50 recurrences, or of all.
  double regret = 0.0;        // Of all recurrences.
  Usage usage{};              // Of all recurrences.
  std::int64_t runs = 0;      // Tries that were begun.
  std::int64_t stopped = 0;   // Of them, without having reached the target.
  double unfinished = 0.0;    // Recurrences of which no try reached it.
};

// Puts a summary together, recurrence by recurrence. One owner.
class ReplaySummarizer {
 public:
  // Of so many recurrences.
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

// A new replay with this seed, from its first recurrence.
Result<ReplaySummary> ReplaySeed(const ReplayJob& job, const ContenderSpec& spec,
                                 std::uint64_t seed, std::int64_t recurrences);

// One per seed, from 0: `job.recurrences()` recurrences each.
Result<std::vector<ReplaySummary>> ReplaySeeds(const ReplayJob& job, const ContenderSpec& spec,
                                               int seeds);

// Mean and spread of one figure.
SampleSummary Of(const std::vector<ReplaySummary>& summaries, double ReplaySummary::*figure);

}  // namespace zeus::replay
