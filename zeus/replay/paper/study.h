#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/replay/paper/evaluation.h"
#include "zeus/replay/paper/motivation_figures.h"

// Everything that the paper evaluates by replaying its traces (Zeus §6).
namespace zeus::replay::paper {

// Who is compared on all settings, in this order.
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
  std::string name;        // Of what varies: the contender, or "β = 2", "η = 0.5".
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
  std::vector<JobsOfGpu> jobs_by_eta{};  // Of the usual GPU, as kEtas.
  JobsOfGpu converging{};  // Of the usual GPU, without batch sizes that do not always arrive.
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

}  // namespace zeus::replay::paper
