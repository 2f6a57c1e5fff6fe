#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/statistics.h"
#include "zeus/replay/contender.h"
#include "zeus/replay/job_replay.h"
#include "zeus/replay/replay_job.h"
#include "zeus/report/figure.h"

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

// Results of the reference's simulator (50 seeds, eta 0.5, beta 2, 2 |B| |P| recurrences; regret at
// the end with 1000 seeds), and of `knowledge_gradient` when it was designed (1000 seeds).

struct ReferenceFigures {
  std::string_view name;
  int recurrences;
  int oracle_batch_size;
  int oracle_limit;
  double oracle_energy;  // Relative to the default, as are energy and time below.
  double oracle_time;
  double default_cost;  // In units of the oracle's cost, as are the costs below.
  double energy;        // `zeus` over the last five recurrences, as are time and cost.
  double time;
  double cost;
  double regret_of_50;
  double regret;
  double regret_error;  // Standard error of the mean of 50 seeds.
  double knowledge_gradient_regret;
  double grid_energy;  // `grid` over the last five recurrences.
  double grid_time;
  double grid_regret_of_50;
  double grid_regret;
};

inline constexpr std::array kReferenceFigures = {
    ReferenceFigures{"v100/deepspeech2", 210, 48, 150, 0.614, 0.771, 1.409, 0.620, 0.774, 1.005,
                     7.67, 8.55, 0.32, 1.74, 0.659, 0.761, 75.3, 88.8},
    ReferenceFigures{"v100/bert_qa", 98, 12, 200, 0.827, 1.007, 1.086, 0.828, 1.036, 1.017, 1.52,
                     1.78, 0.16, 1.18, 0.837, 1.027, 9.6, 9.7},
    ReferenceFigures{"v100/bert_sa", 70, 64, 175, 0.791, 1.084, 1.057, 0.791, 1.084, 1.000, 1.69,
                     1.69, 0.00, 1.03, 0.791, 1.084, 8.2, 8.2},
    ReferenceFigures{"v100/resnet50", 70, 360, 175, 0.806, 1.075, 1.054, 0.809, 1.078, 1.003, 4.33,
                     4.51, 0.09, 1.38, 0.856, 1.065, 15.1, 15.5},
    ReferenceFigures{"v100/shufflenet", 140, 128, 100, 0.253, 0.566, 2.315, 0.257, 0.562, 0.998,
                     9.29, 9.65, 0.15, 4.53, 0.345, 0.566, 229.5, 250.0},
    ReferenceFigures{"v100/neumf", 182, 16384, 175, 0.347, 0.364, 2.767, 0.345, 0.362, 0.996, 14.50,
                     15.36, 0.69, 8.05, 0.347, 0.365, 25129.8, 25131.2},
    ReferenceFigures{"a40/deepspeech2", 108, 32, 175, 0.337, 0.408, 2.615, 0.337, 0.408, 1.000,
                     8.23, 8.27, 0.06, 3.53, 0.374, 0.418, 46.9, 62.7},
    ReferenceFigures{"a40/bert_qa", 126, 32, 225, 0.837, 1.064, 1.045, 0.833, 1.099, 1.018, 2.09,
                     3.31, 0.20, 2.53, 0.872, 1.128, 20.1, 32.2},
    ReferenceFigures{"a40/bert_sa", 50, 128, 200, 0.794, 1.112, 1.042, 0.794, 1.112, 1.000, 4.40,
                     4.40, 0.01, 1.59, 0.794, 1.112, 24.5, 24.5},
    ReferenceFigures{"a40/resnet50", 108, 256, 225, 0.849, 1.016, 1.061, 0.849, 1.019, 1.002, 4.64,
                     5.18, 0.13, 2.97, 0.869, 1.073, 32.2, 35.1},
    ReferenceFigures{"a40/shufflenet", 180, 128, 225, 0.330, 0.461, 2.466, 0.331, 0.463, 1.003,
                     9.62, 9.99, 0.16, 4.67, 0.347, 0.488, 285.6, 324.6},
    ReferenceFigures{"a40/neumf", 216, 16384, 100, 0.388, 0.405, 2.490, 0.394, 0.411, 1.014, 12.66,
                     14.09, 0.74, 7.31, 0.389, 0.401, 9613.3, 9622.4},
};

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
