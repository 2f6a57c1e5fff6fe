#include <fmt/format.h>

#include <algorithm>

#include "zeus/replay/paper/drawing.h"
#include "zeus/replay/paper/motivation_figures.h"
#include "zeus/replay/paper/workload_table.h"

namespace zeus::replay::paper {
namespace {

std::string BatchSizes(const ReplayJob& job) {
  if (job.arms.empty()) return "none";
  return fmt::format("{} from {} to {}", job.arms.size(), job.arms.front().batch_size,
                     job.arms.back().batch_size);
}

std::string Limits(const ReplayJob& job) {
  if (job.arms.empty()) return "none";
  const auto& limits = job.arms.back().limits;
  return fmt::format("{} from {:g} to {:g} W", limits.size(), limits.front().limit.value(),
                     limits.back().limit.value());
}

}  // namespace

report::Table WorkloadTable(std::span<const ReplayJob> jobs) {
  report::Table table{
      .id = "table-1",
      .title = "Table 1: Workloads",
      .caption =
          "The paper's workloads, and what is known of them here: batch sizes, and a run of "
          "the default configuration.",
      .columns = {"task", "dataset", "model", "optimizer", "b₀", "target", "batch sizes",
                  "default takes (h)", "default uses (MJ)"}};
  for (const PaperWorkload& workload : kPaperWorkloads) {
    const auto job = std::ranges::find(jobs, workload.label, &ReplayJob::label);
    if (job == jobs.end()) continue;
    constexpr double kHour = 3600;
    const Usage usual = job->DefaultUsage();
    table.rows.push_back({{.text = std::string(workload.task)},
                          {.text = std::string(workload.dataset)},
                          {.text = std::string(workload.model)},
                          {.text = std::string(workload.optimizer)},
                          {.text = fmt::to_string(workload.default_batch_size),
                           .value = workload.default_batch_size},
                          {.text = std::string(workload.target)},
                          {.text = BatchSizes(*job)},
                          NumberCell(usual.time.count() / kHour, 2),
                          NumberCell(usual.energy.value() / kMega, 3)});
  }
  return table;
}

report::Table GpuTable(std::span<const JobsOfGpu> gpus) {
  report::Table table{.id = "table-2",
                      .title = "Table 2: Hardware",
                      .caption =
                          "The paper's GPUs, and the power limits that are known of them; "
                          "its hosts are no part of the traces.",
                      .columns = {"GPU", "memory", "architecture", "power limits", "workloads"}};
  for (const PaperGpu& gpu : kPaperGpus) {
    const auto jobs = std::ranges::find_if(gpus, [&](const JobsOfGpu& candidates) {
      return !candidates.empty() && candidates.front().gpu_model == gpu.model;
    });
    if (jobs == gpus.end()) continue;
    table.rows.push_back(
        {{.text = std::string(gpu.title)},
         {.text = std::string(gpu.memory)},
         {.text = std::string(gpu.architecture)},
         {.text = Limits(jobs->front())},
         {.text = fmt::to_string(jobs->size()), .value = static_cast<double>(jobs->size())}});
  }
  return table;
}

}  // namespace zeus::replay::paper
