#include "zeus/replay/paper/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "zeus/replay/paper/workload_table.h"

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

}  // namespace zeus::replay::paper
