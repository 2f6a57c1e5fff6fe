#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/workload.h"
#include "zeus/replay/history/run_history.h"

// What was measured at one power limit on one GPU model, carried over to others: by the ratios that
// a workload of the built-in catalogue has there (docs/workload-catalogue.md). An estimate; how
// much workloads differ in it says how sure it is.
namespace zeus::replay {

// By id or by the name that drivers give it ("v100", "Tesla V100-PCIE-32GB"); null: not one of the
// catalogue.
const sim::GpuModel* CatalogueModel(std::string_view gpu_model);

// The workload whose power is most like what was measured.
const sim::Workload& NearestWorkload(const MeasuredJob& job, const sim::GpuModel& model);

struct Translation {
  const sim::Workload* workload = nullptr;
  const sim::GpuModel* from = nullptr;
  const sim::GpuModel* to = nullptr;
};

// All power limits of the target, in steps. Those that were measured there stay as they are.
std::vector<LimitRecord> TranslateLimits(const MeasuredJob& job, const MeasuredArm& arm,
                                         const Translation& translation);

}  // namespace zeus::replay
