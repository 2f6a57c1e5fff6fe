#include "zeus/replay/replay_summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace zeus::replay {
namespace {

constexpr std::int64_t kLastRecurrences = 5;
constexpr std::int64_t kEarlyRecurrences = 50;

}  // namespace

ReplaySummarizer::ReplaySummarizer(const ReplayJob& job, std::int64_t recurrences)
    : usual_(job.DefaultUsage()),
      least_(job.HasOracle() ? job.OracleCost() : Joules(std::numeric_limits<double>::quiet_NaN())),
      recurrences_(recurrences) {}

void ReplaySummarizer::Add(const ReplayedRecurrence& recurrence) {
  const Usage& usage = recurrence.usage;
  const double cost = usage.cost / least_;
  summary_.usage += usage;
  summary_.regret += cost - 1;
  if (added_ < kEarlyRecurrences) summary_.regret_of_50 = summary_.regret;
  if (!recurrence.runs.back().converged) ++summary_.unfinished;
  for (const ReplayedRun& run : recurrence.runs) {
    if (run.epochs == 0) continue;
    ++summary_.runs;
    if (!run.converged) ++summary_.stopped;
  }
  if (added_++ < recurrences_ - kLastRecurrences) return;
  const auto latest = static_cast<double>(std::min(recurrences_, kLastRecurrences));
  summary_.last_five_energy += usage.energy / usual_.energy / latest;
  summary_.last_five_time += usage.time / usual_.time / latest;
  summary_.last_five_cost += cost / latest;
}

Result<ReplaySummary> ReplaySeed(const ReplayJob& job, const ContenderSpec& spec,
                                 std::uint64_t seed, std::int64_t recurrences) {
  ZEUS_TRY(JobReplay replay, JobReplay::Make(job, spec, seed));
  ReplaySummarizer summarizer(job, recurrences);
  for (std::int64_t t = 0; t < recurrences; ++t) summarizer.Add(replay.Next());
  return summarizer.summary();
}

Result<std::vector<ReplaySummary>> ReplaySeeds(const ReplayJob& job, const ContenderSpec& spec,
                                               int seeds) {
  std::vector<ReplaySummary> summaries;
  for (int seed = 0; seed < seeds; ++seed) {
    ZEUS_TRY(const ReplaySummary summary,
             ReplaySeed(job, spec, static_cast<std::uint64_t>(seed), job.recurrences()));
    summaries.push_back(summary);
  }
  return summaries;
}

SampleSummary SummarizeFigure(const std::vector<ReplaySummary>& summaries,
                              double ReplaySummary::*figure) {
  std::vector<double> values;
  values.reserve(summaries.size());
  for (const ReplaySummary& summary : summaries) values.push_back(summary.*figure);
  return Summarize(values);
}

}  // namespace zeus::replay
