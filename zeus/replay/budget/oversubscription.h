#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/budget/power_curve.h"
#include "zeus/optimizer/budget/problem.h"
#include "zeus/replay/cluster/cluster_trace.h"
#include "zeus/replay/replay_job.h"
#include "zeus/report/figure.h"

// How many more GPUs fit under a power budget, and what that costs the jobs. A site that provides
// for the highest limit of every GPU uses little of it: jobs come and go, and draw less than they
// may. The study runs a trace of jobs on GPUs whose share of the budget shrinks: 30 % more GPUs
// under the same budget, each as busy as before, leave each of them 1 / 1.3 of its watts.
namespace zeus::replay {

// How the watts are shared out.
enum class BudgetRule {
  kUncapped,      // Not at all: how often it would go wrong.
  kUniform,       // Every GPU has the same cap, busy or idle, whatever happens.
  kWaterFilling,  // The solver of zeus/optimizer/budget, at the start of every period.
};
std::string_view ToText(BudgetRule rule);  // "uncapped", "uniform", "water-filling".

// The power curve of jobs of a workload at one batch size.
struct NamedCurve {
  std::string name{};  // "resnet50, batch size 128".
  std::string workload{};
  water_filling::SharedCurve curve{};
};
// Returns a curve for every batch size of every job that was recorded at two limits or more.
Result<std::vector<NamedCurve>> CurvesOf(std::span<const ReplayJob> jobs);

struct OversubscriptionOptions {
  std::size_t gpus = 0;        // 0: as many as jobs of the trace ever run at once.
  std::vector<double> more{};  // Additional GPUs under the same budget, as shares: 0.3.
  water_filling::Resource resource = water_filling::Resource::kLimits;
  water_filling::Objective objective = water_filling::Objective::kMean;
  Seconds period{300};     // Jobs start, and watts are shared out, once in a period.
  Watts idle{};            // Draw of a GPU without a job.
  double accepted = 1.05;  // The mean slowdown up to which GPUs are worth adding.
  int threads = 1;
};

// A run of the trace by one rule with one budget.
struct OversubscriptionRun {
  BudgetRule rule = BudgetRule::kUncapped;
  double more = 0;
  Watts budget{};
  double mean_slowdown = 1;  // Time that all jobs took over the time without caps.
  double p99_slowdown = 1;   // Over jobs: their runtime over that without caps.
  double worst_slowdown = 1;
  double throughput = 0;  // More work per second than without more GPUs: 0.25.
  Joules energy{};        // Use of all GPUs, idle ones included, until the last job ended.
  Watts highest_draw{};
  double over = 0;            // Share of the time in which more than the budget was drawn.
  double short_of_watts = 0;  // Share of the time in which not even the lowest limits fitted.
  Watts swing{};              // Mean change of a busy GPU's cap from period to period.
  std::vector<double> slowdown_of_curve{};  // Mean, for each curve; NaN without jobs.
  std::vector<Watts> draw{};  // Mean over each of at most 400 equal parts of the time.
};

struct Oversubscription {
  std::vector<NamedCurve> curves{};
  std::string source{};  // "groups.csv".
  std::size_t jobs = 0;
  std::size_t gpus = 0;
  Seconds span{};   // Time from the first start to the last end, without caps.
  double busy = 0;  // Share of the GPUs' time in which they have a job, without caps.
  OversubscriptionOptions options{};
  std::vector<OversubscriptionRun> runs{};  // By rule, then by `more`.
  std::vector<std::string> remarks{};

  // Returns the share of GPUs that can be added by this rule with the accepted mean slowdown,
  // linear between the runs; nullopt when even the last of them is below it.
  std::optional<double> MoreAtAccepted(BudgetRule rule) const;
};

// Runs the trace by every rule and with every budget. Each job takes one GPU and the curve of its
// workload; the batch sizes of a workload take turns over its groups. kInvalidArgument names an
// option that has no meaning; kNotFound names a workload without a curve.
Result<Oversubscription> StudyOversubscription(const ClusterTrace& trace,
                                               std::vector<NamedCurve> curves,
                                               const OversubscriptionOptions& options);

Json ToJson(const Oversubscription& study);
report::Report ToReport(const Oversubscription& study);

}  // namespace zeus::replay
