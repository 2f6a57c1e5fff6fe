#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/statistics.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/workload.h"
#include "zeus/replay/contender.h"
#include "zeus/replay/history/run_history.h"
#include "zeus/report/figure.h"

namespace zeus::replay {

// Estimates what a job would take at power limits or on GPU models where it never ran. A
// measurement is multiplied by the ratio that a workload of the built-in catalogue shows between
// the two settings (docs/workload-catalogue.md). The spread of the estimates over the workloads
// tells how certain they are.

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

// Estimates how a recorded job would have fared with another eta, on another GPU model, or under
// another policy.

struct WhatIfQuestion {
  std::optional<double> eta{};  // nullopt: the eta of the job.
  std::string gpu_model{};      // Empty: the model on which it ran.
  std::vector<ContenderSpec> contenders{};
  std::int64_t recurrences = 0;  // 0: as many as were recorded.
  int seeds = 50;
};

// Mean and standard deviation over the seeds, and the lowest and highest mean if other workloads of
// the catalogue are used for the translation. low equals high if nothing is translated.
struct Estimate {
  double mean = 0.0;
  double deviation = 0.0;
  double low = 0.0;
  double high = 0.0;
};

struct WhatIfOutcome {
  std::string contender{};
  Estimate energy{};   // In joules, over all recurrences.
  Estimate time{};     // In seconds.
  Estimate cost{};     // In joules.
  Estimate reached{};  // Share of recurrences that reach the target.
};

struct WhatIfAnswer {
  std::string job_id{};
  std::string recorded_gpu_model{};
  std::string gpu_model{};
  double eta = 0.5;
  std::int64_t recorded_recurrences = 0;
  Usage recorded{};  // Recorded usage, with its cost at the requested eta.
  std::int64_t recurrences = 0;
  std::vector<WhatIfOutcome> outcomes{};
  std::optional<int> best_batch_size{};  // nullopt: none reaches the target in all its runs.
  std::optional<Watts> best_limit{};
  std::vector<std::string> measured{};   // Sentences about the data behind the answer.
  std::vector<std::string> estimated{};  // Sentences about values carried over from the catalogue.
  std::vector<std::string> unknown{};    // Sentences about gaps in the data.
};

// kInvalidArgument for an unknown GPU model or contender, kNotFound when no run has ended.
Result<WhatIfAnswer> Answer(const RunHistory& history, const WhatIfQuestion& question);

Json ToJson(const WhatIfAnswer& answer);  // docs/formats.md
report::Report ToReport(const WhatIfAnswer& answer);

}  // namespace zeus::replay
