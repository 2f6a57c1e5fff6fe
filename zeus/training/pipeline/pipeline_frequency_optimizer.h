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
#include "zeus/training/pipeline/pipeline_profiler.h"

namespace zeus {

struct PipelineOptions {
  PipelineRank rank{};
  // All ranks of the job; null for one process.
  Collective* collective = nullptr;
  // Makes and keeps the plans. Only rank 0 uses it; it must outlive the optimiser.
  PlanService* service = nullptr;

  // The pipeline to plan for. The profile is measured, and microbatches are counted if they are not
  // given. If the service has a plan under this id, that is used and nothing is measured.
  PlanSpec job{};

  pipeline::SweepRules sweep{};
  Hertz stride = Hertz::FromMega(60);  // Distance of the clocks that are measured.
  // The highest clock to use. By default, a clock that was found locked is not exceeded.
  Ceiling ceiling = Ceiling::kAsFound;
  // Called before times are measured; it must wait until the GPU has finished its work. While a
  // plan is in force, it is only called if stragglers are detected.
  std::function<void()> synchronize{};

  // A rank whose instructions take this many times longer than planned is a straggler, and a new
  // plan is made for its pace. Without a value stragglers are not detected; see ReportStraggler().
  std::optional<double> straggler_threshold = 1.08;
  // How often rank 0 asks the service for a new plan, at the end of an iteration.
  Seconds poll_interval{1.0};
};

// Trains a pipeline with less energy and no slowdown. It measures the instructions during the first
// iterations (PipelineProfiler), has a plan made, and from then on sets the clock of each
// instruction on the GPUs of this rank. There is one in each process, with a monitor of the rank's
// own GPUs; all ranks make the same calls.
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
// The training thread never waits for a driver. If a program runs other instructions than planned,
// that is logged once, and the stage runs at the highest clock. Clocks are unlocked on every exit
// that code can observe, and after any other by the next start of Zeus. No failure stops the
// training. One owner; the monitor must outlive it.
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

  // Reports that this rank takes `slowdown` times as long as planned, for a reason that no clock
  // can change; 1: not any more. For programs that know more than the times of their instructions
  // show.
  void ReportStraggler(double slowdown);

  // The plan in force; nullptr while the pipeline is measured, or after a failure (see trouble()).
  const CurrentPlan* plan() const;
  // The profile of the whole pipeline, on every rank; nullptr if it was not measured.
  const pipeline::PipelineProfile* profile() const;
  // Number of iterations that profiling took.
  int profiling_iterations() const;
  // Number of clocks that were given to the driver.
  std::int64_t clock_changes() const;
  // The reason why clocks are not set as planned; nullopt if they are.
  std::optional<Error> trouble() const;

  // Waits until the driver has got the present clock. For programs in virtual time.
  void WaitForClock();

 private:
  class Session;
  std::unique_ptr<Session> session_;
};

}  // namespace zeus
