#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/optimizer/collective.h"
#include "zeus/optimizer/pipeline/clock_sweep.h"
#include "zeus/plan/plan_service.h"
#include "zeus/training/callback.h"
#include "zeus/training/pipeline/pipeline_rank.h"

namespace zeus {

struct PipelineOptions {
  PipelineRank rank{};
  // Of all ranks of the job; null for one process.
  Collective* collective = nullptr;
  // Where plans are made and kept. Only rank 0 uses it; it must outlive the optimiser.
  PlanService* service = nullptr;

  // What is planned for. The profile is measured, and microbatches, where it has none, are counted;
  // where the service knows the id already, its plan is taken and nothing is measured.
  PlanSpec job{};

  pipeline::SweepRules sweep{};
  Hertz stride = Hertz::FromMega(60);  // Between the clocks that are measured.
  // The highest setting: a clock that was found locked below that of the device is kept to.
  Ceiling ceiling = Ceiling::kAsFound;
  // Called before times are taken: waits until the GPU has done what was asked of it. While a plan
  // is in force it is called only where stragglers are watched for.
  std::function<void()> synchronize{};

  // A rank whose instructions take so much longer than planned is a straggler, and the job is
  // planned anew for its pace. Without a value nobody is; see ReportStraggler().
  std::optional<double> straggler_threshold = 1.08;
  // How often rank 0 asks the service for a new plan, at the end of an iteration.
  Seconds poll_interval{1.0};
};

// Trains a pipeline with less energy and no slowdown: measures its instructions during the first
// iterations (PipelineProfiler), has a plan made, and from then on sets the clock of each
// instruction on the GPUs of this rank. One per process, with a monitor of the rank's own GPUs; all
// ranks make the same calls.
//
//   PipelineFrequencyOptimizer optimizer(monitor, {.rank = …, .service = …, .job = {…}});
//   for (…) {  // Iterations.
//     for (…) {
//       optimizer.OnInstructionBegin("forward");
//       …
//       optimizer.OnInstructionEnd("forward");
//     }
//     optimizer.OnStepEnd();
//   }
//
// The training thread never waits for a driver. A program that does other instructions than planned
// is told so once and runs at the highest clock. Clocks are unlocked on every exit that code can
// see, and by the next start after any other. Nothing that goes wrong stops the training. One
// owner; the monitor must outlive it.
class PipelineFrequencyOptimizer final : public TrainingCallback {
 public:
  PipelineFrequencyOptimizer(NodeMonitor& monitor, PipelineOptions options);
  ~PipelineFrequencyOptimizer() override;
  PipelineFrequencyOptimizer(const PipelineFrequencyOptimizer&) = delete;
  PipelineFrequencyOptimizer& operator=(const PipelineFrequencyOptimizer&) = delete;

  void OnInstructionBegin(std::string_view instruction) override;
  void OnInstructionEnd(std::string_view instruction) override;
  // Ends an iteration. Ranks exchange a few numbers, and a plan when there is a new one.
  void OnStepEnd() override;
  // Unlocks the clocks.
  void OnTrainEnd() override;

  // This rank is slower than planned by so much, for a reason that no clock can mend; 1: no longer.
  // For programs that know better than the times of their instructions tell.
  void ReportStraggler(double slowdown);

  // The plan in force; nullptr while the pipeline is measured, or where there is none: trouble().
  const CurrentPlan* plan() const;
  // Of the whole pipeline, on every rank; nullptr where it was not measured.
  const pipeline::PipelineProfile* profile() const;
  // Iterations until the pipeline was known.
  int profiling_iterations() const;
  // How often the driver was told a clock.
  std::int64_t clock_changes() const;
  // Why clocks are not, or not as planned, being set; nullopt if they are.
  std::optional<Error> trouble() const;

  // For programs in virtual time: returns when the driver has been told the present clock.
  void WaitForClock();

 private:
  class Session;
  std::unique_ptr<Session> session_;
};

}  // namespace zeus
