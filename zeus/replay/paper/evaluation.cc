#include "zeus/replay/paper/evaluation.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <utility>

#include "zeus/base/parallel.h"
#include "zeus/replay/job_replay.h"

namespace zeus::replay::paper {
namespace {

// What is kept of one seed.
struct SeedResult {
  ReplaySummary summary{};
  std::vector<double> regret{};
  std::vector<SearchStep> path{};
  bool ends_at_oracle = false;
};

bool IsOracles(const ReplayJob& job, const SearchStep& step) {
  if (!job.HasOracle()) return false;
  return step.batch_size == job.oracle().batch_size && step.limit == job.oracle().best_limit;
}

Result<SeedResult> ReplayOnce(const Match& match, std::uint64_t seed) {
  const ReplayJob& job = *match.job;
  ZEUS_TRY(JobReplay replay, JobReplay::Make(job, match.contender, seed));
  const std::int64_t recurrences = job.recurrences();
  ReplaySummarizer summarizer(job, recurrences);
  SeedResult result;
  for (std::int64_t i = 0; i < recurrences; ++i) {
    const ReplayedRecurrence& recurrence = replay.Next();
    summarizer.Add(recurrence);
    result.regret.push_back(summarizer.summary().regret);
    for (const ReplayedRun& run : recurrence.runs)
      if (run.epochs > 0)
        result.path.push_back({.recurrence = i,
                               .batch_size = run.batch_size,
                               .limit = run.limit,
                               .converged = run.converged});
  }
  result.summary = summarizer.summary();
  result.ends_at_oracle = !result.path.empty() && IsOracles(job, result.path.back());
  return result;
}

void Take(MatchResult& result, SeedResult seed) {
  if (result.seeds.empty()) result.path = std::move(seed.path);
  result.seeds.push_back(seed.summary);
  result.regret.push_back(std::move(seed.regret));
  result.ends_at_oracle.push_back(seed.ends_at_oracle);
}

}  // namespace

Result<std::vector<MatchResult>> Evaluate(std::span<const Match> matches,
                                          const EvaluationOptions& options) {
  const auto seeds = static_cast<std::size_t>(options.seeds);
  std::vector<std::optional<Result<SeedResult>>> replays(matches.size() * seeds);
  std::atomic<std::size_t> done{0};
  ForEachIndex(replays.size(), options.threads, [&](std::size_t index) {
    replays[index] = ReplayOnce(matches[index / seeds], index % seeds);
    if (options.progress) options.progress(++done, replays.size());
  });
  std::vector<MatchResult> results;
  for (std::size_t i = 0; i < matches.size(); ++i) {
    MatchResult& result = results.emplace_back(MatchResult{.match = matches[i]});
    for (std::size_t seed = 0; seed < seeds; ++seed) {
      ZEUS_TRY(SeedResult replay, std::move(*replays[i * seeds + seed]));
      Take(result, std::move(replay));
    }
  }
  return results;
}

std::vector<double> BySeed(const MatchResult& result, double ReplaySummary::*figure) {
  std::vector<double> values;
  for (const ReplaySummary& seed : result.seeds) values.push_back(seed.*figure);
  return values;
}

SampleSummary Mean(const MatchResult& result, double ReplaySummary::*figure) {
  return zeus::Summarize(BySeed(result, figure));
}

std::vector<double> AcrossWorkloads(std::span<const MatchResult> workloads,
                                    const std::function<double(const ReplaySummary&)>& figure,
                                    const Combine& combine) {
  if (workloads.empty()) return {};
  std::vector<double> combined;
  for (std::size_t seed = 0; seed < workloads.front().seeds.size(); ++seed) {
    std::vector<double> values;
    for (const MatchResult& workload : workloads) values.push_back(figure(workload.seeds[seed]));
    combined.push_back(combine(values));
  }
  return combined;
}

double GeometricMean(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

double Least(std::span<const double> values) { return *std::ranges::min_element(values); }
double Greatest(std::span<const double> values) { return *std::ranges::max_element(values); }

double Quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

}  // namespace zeus::replay::paper
