#include "zeus/replay/catalogue_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "zeus/base/random.h"
#include "zeus/base/text.h"
#include "zeus/device/sim/workload.h"
#include "zeus/replay/workloads.h"

namespace zeus::replay {
namespace {

constexpr int kRunsPerBatchSize = 16;
constexpr Watts kLimitStep(25.0);
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// The largest batch size of each workload, in the order of PaperWorkloads(), that ran on a board
// with at least this much memory.
struct MemoryStep {
  std::uint64_t bytes;
  std::array<unsigned, 6> largest_batch_sizes;
};
constexpr std::array kMemorySteps = {
    MemoryStep{16 * kGiB, {72, 24, 64, 128, 2048, 16384}},
    MemoryStep{24 * kGiB, {128, 32, 128, 256, 4096, 16384}},
    MemoryStep{32 * kGiB, {192, 56, 128, 360, 4096, 16384}},
    MemoryStep{48 * kGiB, {192, 72, 256, 512, 8192, 32768}},
};

unsigned LargestBatchSize(const sim::GpuModel& model, std::size_t workload) {
  unsigned largest = kMemorySteps.front().largest_batch_sizes[workload];
  for (const MemoryStep& step : kMemorySteps)
    if (step.bytes <= model.memory_bytes) largest = step.largest_batch_sizes[workload];
  return largest;
}

std::vector<std::optional<int>> DrawRuns(const sim::Workload& workload, unsigned batch_size) {
  Random random = Random(0).Fork(fmt::format("{} {}", workload.name, batch_size));
  std::vector<std::optional<int>> runs;
  for (int i = 0; i < kRunsPerBatchSize; ++i) {
    const auto epochs = sim::DrawEpochsToTarget(workload, batch_size, random);
    runs.push_back(epochs ? std::optional(static_cast<int>(*epochs)) : std::nullopt);
  }
  return runs;
}

Result<std::vector<LimitRecord>> PredictLimits(const sim::GpuModel& model,
                                               const sim::Workload& workload, unsigned batch_size) {
  std::vector<LimitRecord> records;
  for (const Watts limit : CatalogueLimits(model)) {
    ZEUS_TRY(const sim::OperatingPoint point,
             sim::Predict(model, workload, batch_size, {.power_limit = limit, .clock_cap = {}}));
    records.push_back({.limit = limit,
                       .power = point.average_power,
                       .epoch = {.time = point.time_per_epoch,
                                 .energy = point.average_power * point.time_per_epoch}});
  }
  return records;
}

Result<ReplayJob> MakeJob(const sim::GpuModel& model, const WorkloadKey& key, unsigned largest,
                          double eta) {
  ZEUS_TRY(const sim::Workload* const workload, sim::FindWorkload(key.label));
  ReplayJob job{.gpu_model = LowerCase(model.id),
                .label = std::string(key.label),
                .title = std::string(key.title),
                .max_epochs = key.max_epochs,
                .eta = eta,
                .max_power = model.limit_range.max};
  for (const unsigned batch_size : workload->batch_sizes) {
    if (batch_size > largest) break;
    ZEUS_TRY(std::vector<LimitRecord> limits, PredictLimits(model, *workload, batch_size));
    const int size = static_cast<int>(batch_size);
    if (size <= key.default_batch_size) job.default_batch_size = size;
    job.arms.push_back(
        MakeArm(size, DrawRuns(*workload, batch_size), std::move(limits), eta, job.max_power));
  }
  return job;
}

}  // namespace

std::vector<Watts> CatalogueLimits(const sim::GpuModel& model) {
  std::vector<Watts> limits;
  for (Watts limit = model.limit_range.min; limit < model.limit_range.max; limit += kLimitStep)
    limits.push_back(limit);
  limits.push_back(model.limit_range.max);
  return limits;
}

Result<std::vector<ReplayJob>> CatalogueJobs(std::string_view gpu_model, double eta) {
  ZEUS_TRY(const sim::GpuModel* const model, sim::FindGpuModel(gpu_model));
  std::vector<ReplayJob> jobs;
  for (std::size_t i = 0; i < PaperWorkloads().size(); ++i) {
    ZEUS_TRY(ReplayJob job, MakeJob(*model, PaperWorkloads()[i], LargestBatchSize(*model, i), eta));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace zeus::replay
