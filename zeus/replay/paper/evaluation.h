#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/statistics.h"
#include "zeus/replay/contender.h"
#include "zeus/replay/replay_job.h"
#include "zeus/replay/replay_summary.h"

// Many replays at once: jobs, contenders and seeds.
namespace zeus::replay::paper {

// A job under a contender. The job must outlive what is made of it.
struct Match {
  const ReplayJob* job = nullptr;
  ContenderSpec contender{};
};

// Where a search went: the runs that were begun, in their order.
struct SearchStep {
  std::int64_t recurrence = 0;
  int batch_size = 0;
  Watts limit{};
  bool converged = false;
};

struct MatchResult {
  Match match{};
  std::vector<ReplaySummary> seeds{};
  std::vector<std::vector<double>> regret{};  // By seed: cumulative, after each recurrence.
  std::vector<SearchStep> path{};             // Of the first seed.
  std::vector<bool> ends_at_oracle{};         // By seed: the last run had the oracle's knobs.
};

// Told after every replay, from any thread, how many of all are done.
using Progress = std::function<void(std::size_t done, std::size_t of)>;

struct EvaluationOptions {
  int seeds = 50;
  int threads = 1;
  Progress progress{};
};

// One result per match, in their order; the same for any number of threads.
Result<std::vector<MatchResult>> Evaluate(std::span<const Match> matches,
                                          const EvaluationOptions& options);

// One figure of each seed.
std::vector<double> BySeed(const MatchResult& result, double ReplaySummary::*figure);
SampleSummary Mean(const MatchResult& result, double ReplaySummary::*figure);

// What one experiment says about several workloads, for each seed of them: `combine` is told one
// value per workload.
using Combine = std::function<double(std::span<const double>)>;
std::vector<double> AcrossWorkloads(std::span<const MatchResult> workloads,
                                    const std::function<double(const ReplaySummary&)>& figure,
                                    const Combine& combine);

double GeometricMean(std::span<const double> values);
double Least(std::span<const double> values);
double Greatest(std::span<const double> values);

// Between sorted neighbours, linearly; `share` from 0 to 1; `values` is not empty.
double Quantile(std::vector<double> values, double share);

}  // namespace zeus::replay::paper
