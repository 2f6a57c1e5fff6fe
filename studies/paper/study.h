#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "studies/paper/motivation_figures.h"
#include "zeus/base/result.h"
#include "zeus/base/statistics.h"
#include "zeus/replay/contender.h"
#include "zeus/replay/job_comparison.h"
#include "zeus/replay/replay_job.h"

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
  std::vector<SearchStep> path{};             // The path of the first seed.
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

// The value of one experiment over several workloads, for each seed of them: `combine` is given one
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

// Everything that the paper evaluates by replaying its traces (Zeus §6).

// The contenders that are compared on all settings, in this order.
inline constexpr std::array kContenders = {"zeus", "knowledge_gradient", "grid"};
inline constexpr std::array kAblations = {"zeus_no_early_stop", "zeus_no_pruning", "zeus_no_jit"};
inline constexpr std::array kBetas = {1.5, 2.0, 2.5, 3.0, 4.0, 5.0};
constexpr double kUsualBeta = 2.0;
inline constexpr std::array kEtas = {0.0, 0.25, 0.5, 0.75, 1.0};
constexpr double kUsualEta = 0.5;
constexpr std::string_view kUsualGpu = "v100";

// The jobs of a GPU model at an eta: from traces, or from the built-in catalogue.
using JobSource = std::function<Result<JobsOfGpu>(std::string_view gpu_model, double eta)>;

// The workloads of one GPU under one contender each, in the order of its jobs.
struct WorkloadResults {
  std::string name;        // Names the variant: the contender, or "β = 2", "η = 0.5".
  double parameter = 0.0;  // The beta or eta.
  std::vector<MatchResult> workloads{};
};

struct GpuResults {
  std::string gpu_model;
  std::vector<WorkloadResults> contenders{};  // As kContenders.

  const WorkloadResults& contender(std::string_view name) const;
};

struct Study {
  std::vector<JobsOfGpu> gpus{};         // At the usual eta; in the order of table 2.
  std::vector<JobsOfGpu> jobs_by_eta{};  // Those of the usual GPU, in the order of kEtas.
  JobsOfGpu converging{};  // Those of the usual GPU, without batch sizes that do not always reach
                           // the target.
  std::vector<GpuResults> settings{};        // One for each of `gpus`.
  std::vector<WorkloadResults> betas{};      // As kBetas; on the usual GPU, as what follows.
  std::vector<WorkloadResults> etas{};       // As kEtas.
  std::vector<WorkloadResults> ablations{};  // As kAblations.
  WorkloadResults converging_grid{};         // `grid` on `converging`.

  const JobsOfGpu& usual_jobs() const;
  const GpuResults& usual() const;
};

// Results refer to the jobs in it: it may be moved, not copied. kNotFound when the source lacks a
// workload of the paper, kInvalidArgument when one never reaches its target.
Result<Study> RunStudy(const JobSource& source, const EvaluationOptions& options);

// Variants of zeus compared with it, seed by seed.

// By seed: one workload of a variant, of what it is compared with.
using RatioFunction =
    std::function<std::vector<double>(const WorkloadResults& variant, std::size_t workload)>;

// Ratios of the mean over the seeds of `whole`, which must outlive them: energy and time of all
// recurrences.
RatioFunction CumulativeEnergyRatio(const WorkloadResults& whole);
RatioFunction CumulativeTimeRatio(const WorkloadResults& whole);
// The default's, divided by that of the variant.
RatioFunction ImprovementRatio(double ReplaySummary::*figure);

// By seed: over the workloads.
std::vector<double> GeometricMeans(const WorkloadResults& variant, const RatioFunction& ratio);

}  // namespace zeus::replay::paper
