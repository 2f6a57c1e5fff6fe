#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/workload.h"
#include "zeus/replay/history/run_history.h"

// Estimates what a job would take at power limits or on GPU models where it never ran. A
// measurement is multiplied by the ratio that a workload of the built-in catalogue shows between
// the two settings (docs/workload-catalogue.md). The spread of the estimates over the workloads
// tells how certain they are.
namespace zeus::replay {

// Finds a model by its id or by the name that drivers report ("v100", "Tesla V100-PCIE-32GB").
// Returns null if the catalogue does not have it.
const sim::GpuModel* CatalogueModel(std::string_view gpu_model);

// Returns the workload of the catalogue whose power is closest to the measured power.
const sim::Workload& NearestWorkload(const MeasuredJob& job, const sim::GpuModel& model);

struct Translation {
  const sim::Workload* workload = nullptr;
  const sim::GpuModel* from = nullptr;
  const sim::GpuModel* to = nullptr;
};

// Returns all power limits of the target model in steps. Limits that were measured on it keep their
// measurements.
std::vector<LimitRecord> TranslateLimits(const MeasuredJob& job, const MeasuredArm& arm,
                                         const Translation& translation);

}  // namespace zeus::replay
