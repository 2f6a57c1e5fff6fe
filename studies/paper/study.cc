#include "studies/paper/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "studies/paper/workload_table.h"
#include "zeus/base/parallel.h"
#include "zeus/replay/job_replay.h"

namespace zeus::replay::paper {
namespace {

// Lists of matches that are evaluated together, so that threads have work until the end, and then
// given back one by one.
class Programme {
 public:
  // The jobs under one contender; `into` gets their results.
  void Add(const JobsOfGpu& jobs, const ContenderSpec& contender, WorkloadResults& into) {
    for (const ReplayJob& job : jobs) matches_.push_back({.job = &job, .contender = contender});
    parts_.emplace_back(&into, jobs.size());
  }

  Status Run(const EvaluationOptions& options) {
    ZEUS_TRY(std::vector<MatchResult> results, Evaluate(matches_, options));
    auto next = std::make_move_iterator(results.begin());
    for (const auto& [into, count] : parts_) {
      const auto end = next + static_cast<std::ptrdiff_t>(count);
      into->workloads.assign(next, end);
      next = end;
    }
    return Ok();
  }

 private:
  std::vector<Match> matches_;
  std::vector<std::pair<WorkloadResults*, std::size_t>> parts_;
};

JobsOfGpu OnlyConverging(JobsOfGpu jobs) {
  for (ReplayJob& job : jobs)
    std::erase_if(job.arms, [&](const ReplayArm& arm) {
      return arm.batch_size != job.default_batch_size && !arm.MeanEpochs(job.max_epochs);
    });
  return jobs;
}

// Figures and claims need every workload of the paper, and something to compare with.
Result<JobsOfGpu> ReadAll(const JobSource& source, std::string_view gpu_model, double eta) {
  ZEUS_TRY(JobsOfGpu jobs, source(gpu_model, eta));
  for (const PaperWorkload& workload : kPaperWorkloads) {
    const auto job = std::ranges::find(jobs, workload.label, &ReplayJob::label);
    if (job == jobs.end())
      return Error{ErrorCode::kNotFound,
                   fmt::format("nothing is known of {} on {}, and the paper has it", workload.label,
                               gpu_model)};
    if (!job->HasOracle())
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("{}: no batch size reaches the target in all of its runs", job->name())};
  }
  return jobs;
}

Status ReadJobs(const JobSource& source, Study& study) {
  for (const PaperGpu& gpu : kPaperGpus) {
    ZEUS_TRY(JobsOfGpu jobs, ReadAll(source, gpu.model, kUsualEta));
    study.gpus.push_back(std::move(jobs));
    study.settings.push_back({.gpu_model = std::string(gpu.model)});
  }
  for (const double eta : kEtas) {
    ZEUS_TRY(JobsOfGpu jobs, ReadAll(source, kUsualGpu, eta));
    study.jobs_by_eta.push_back(std::move(jobs));
  }
  study.converging = OnlyConverging(study.usual_jobs());
  return Ok();
}

// Names every result first: the programme points at them.
void NameResults(Study& study) {
  for (GpuResults& gpu : study.settings)
    for (const char* const name : kContenders) gpu.contenders.push_back({.name = name});
  for (const double beta : kBetas)
    study.betas.push_back({.name = fmt::format("β = {:g}", beta), .parameter = beta});
  for (const double eta : kEtas)
    study.etas.push_back({.name = fmt::format("η = {:g}", eta), .parameter = eta});
  for (const char* const name : kAblations) study.ablations.push_back({.name = name});
  study.converging_grid.name = "grid";
}

}  // namespace

const WorkloadResults& GpuResults::contender(std::string_view name) const {
  return *std::ranges::find(contenders, name, &WorkloadResults::name);
}

const JobsOfGpu& Study::usual_jobs() const {
  const auto found = std::ranges::find(settings, kUsualGpu, &GpuResults::gpu_model);
  return gpus[static_cast<std::size_t>(found - settings.begin())];
}

const GpuResults& Study::usual() const {
  return *std::ranges::find(settings, kUsualGpu, &GpuResults::gpu_model);
}

Result<Study> RunStudy(const JobSource& source, const EvaluationOptions& options) {
  Study study;
  ZEUS_RETURN_IF_ERROR(ReadJobs(source, study));
  NameResults(study);
  Programme programme;
  for (std::size_t gpu = 0; gpu < study.gpus.size(); ++gpu)
    for (WorkloadResults& results : study.settings[gpu].contenders)
      programme.Add(study.gpus[gpu], {.name = results.name}, results);
  for (WorkloadResults& results : study.betas)
    programme.Add(study.usual_jobs(), {.name = "zeus", .beta = results.parameter}, results);
  for (std::size_t i = 0; i < study.etas.size(); ++i)
    programme.Add(study.jobs_by_eta[i], {.name = "zeus"}, study.etas[i]);
  for (WorkloadResults& results : study.ablations)
    programme.Add(study.usual_jobs(), {.name = results.name}, results);
  programme.Add(study.converging, {.name = "grid"}, study.converging_grid);
  ZEUS_RETURN_IF_ERROR(programme.Run(options));
  return study;
}

// --- Replays ---

namespace {

// The figures that are kept of one seed.
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

// --- Variants ---

namespace {

using Amount = double (*)(const ReplaySummary&);

RatioFunction CumulativeRatio(const WorkloadResults& whole, Amount amount) {
  return [&whole, amount](const WorkloadResults& variant, std::size_t workload) {
    double usual = 0.0;
    for (const ReplaySummary& seed : whole.workloads[workload].seeds) usual += amount(seed);
    usual /= static_cast<double>(whole.workloads[workload].seeds.size());
    std::vector<double> ratios;
    for (const ReplaySummary& seed : variant.workloads[workload].seeds)
      ratios.push_back(amount(seed) / usual);
    return ratios;
  };
}

}  // namespace

RatioFunction CumulativeEnergyRatio(const WorkloadResults& whole) {
  return CumulativeRatio(whole,
                         [](const ReplaySummary& seed) { return seed.usage.energy.value(); });
}

RatioFunction CumulativeTimeRatio(const WorkloadResults& whole) {
  return CumulativeRatio(whole, [](const ReplaySummary& seed) { return seed.usage.time.count(); });
}

RatioFunction ImprovementRatio(double ReplaySummary::*figure) {
  return [figure](const WorkloadResults& variant, std::size_t workload) {
    std::vector<double> factors;
    for (const ReplaySummary& seed : variant.workloads[workload].seeds)
      factors.push_back(1.0 / (seed.*figure));
    return factors;
  };
}

std::vector<double> GeometricMeans(const WorkloadResults& variant, const RatioFunction& ratio) {
  std::vector<std::vector<double>> ratios;
  for (std::size_t i = 0; i < variant.workloads.size(); ++i) ratios.push_back(ratio(variant, i));
  std::vector<double> means;
  for (std::size_t seed = 0; seed < ratios.front().size(); ++seed) {
    std::vector<double> values;
    for (const std::vector<double>& workload : ratios) values.push_back(workload[seed]);
    means.push_back(GeometricMean(values));
  }
  return means;
}

}  // namespace zeus::replay::paper
