#include "zeus/replay/history/translation.h"

#include <algorithm>
#include <cmath>

#include "zeus/base/text.h"
#include "zeus/replay/catalogue_jobs.h"

namespace zeus::replay {
namespace {

// Limits closer than this count as the same.
constexpr Watts kSameLimit(5.0);

// Maps a batch size to one of the workload by its ratio to the default: batch sizes of different
// workloads have nothing else in common.
unsigned CorrespondingBatchSize(const MeasuredJob& job, const MeasuredArm& arm,
                                const sim::Workload& workload) {
  const double of_default = static_cast<double>(arm.batch_size) / job.spec.default_batch_size;
  return static_cast<unsigned>(std::max(1.0, std::round(workload.default_batch_size * of_default)));
}

// Clamps the limit to the model's range. nullopt: the catalogue cannot predict this point.
std::optional<sim::OperatingPoint> PredictAt(const sim::GpuModel& model,
                                             const sim::Workload& workload, unsigned batch_size,
                                             Watts limit) {
  const Watts possible = std::clamp(limit, model.limit_range.min, model.limit_range.max);
  const auto point =
      sim::Predict(model, workload, batch_size, {.power_limit = possible, .clock_cap = {}});
  return point.ok() ? std::optional(point.value()) : std::nullopt;
}

Watts Distance(Watts a, Watts b) { return a < b ? b - a : a - b; }

const LimitRecord& NearestLimit(const MeasuredArm& arm, Watts limit) {
  return *std::ranges::min_element(
      arm.limits, {}, [limit](const LimitRecord& record) { return Distance(record.limit, limit); });
}

}  // namespace

const sim::GpuModel* CatalogueModel(std::string_view gpu_model) {
  const std::string wanted = LowerCase(gpu_model);
  for (const sim::GpuModel& model : sim::GpuModels())
    if (wanted == LowerCase(model.id) || wanted == LowerCase(model.name)) return &model;
  for (const sim::GpuModel& model : sim::GpuModels())
    if (wanted.find(LowerCase(model.id)) != std::string::npos) return &model;
  return nullptr;
}

const sim::Workload& NearestWorkload(const MeasuredJob& job, const sim::GpuModel& model) {
  const auto distance = [&](const sim::Workload& workload) {
    double sum = 0.0;
    for (const MeasuredArm& arm : job.arms) {
      for (const LimitRecord& record : arm.limits) {
        const auto point =
            PredictAt(model, workload, CorrespondingBatchSize(job, arm, workload), record.limit);
        if (!point) continue;
        const double per_gpu = record.power.value() / std::max(1, job.spec.number_of_gpus);
        sum += std::pow(std::log(per_gpu / point->average_power.value()), 2);
      }
    }
    return sum;
  };
  return *std::ranges::min_element(sim::Workloads(), {}, distance);
}

std::vector<LimitRecord> TranslateLimits(const MeasuredJob& job, const MeasuredArm& arm,
                                         const Translation& translation) {
  const bool same_model = translation.from == translation.to;
  std::vector<LimitRecord> limits;
  if (same_model) limits = arm.limits;
  const unsigned batch_size = CorrespondingBatchSize(job, arm, *translation.workload);
  for (const Watts limit : CatalogueLimits(*translation.to)) {
    const LimitRecord& known = NearestLimit(arm, limit);
    if (same_model && Distance(known.limit, limit) < kSameLimit) continue;
    const auto before =
        PredictAt(*translation.from, *translation.workload, batch_size, known.limit);
    const auto after = PredictAt(*translation.to, *translation.workload, batch_size, limit);
    if (!before || !after) continue;
    const Seconds time = after->time_per_epoch / before->time_per_epoch * known.epoch.time;
    const Watts power = after->average_power / before->average_power * known.power;
    limits.push_back(
        {.limit = limit, .power = power, .epoch = {.time = time, .energy = power * time}});
  }
  std::ranges::sort(limits, {}, &LimitRecord::limit);
  return limits;
}

}  // namespace zeus::replay
