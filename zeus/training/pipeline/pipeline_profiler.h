#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/optimizer/agreement.h"
#include "zeus/optimizer/pipeline/clock_sweep.h"
#include "zeus/optimizer/pipeline/profile.h"
#include "zeus/training/callback.h"
#include "zeus/training/pipeline/clock_setter.h"
#include "zeus/training/pipeline/pipeline_rank.h"
#include "zeus/training/pipeline/stage_meter.h"

namespace zeus {

// Measures the instructions of a pipeline during its first iterations: all stages go through their
// clocks together, from the highest downwards, each clock for as many iterations as the slowest
// stage needs to know enough, until no instruction of any stage takes less effective energy at a
// lower one. Waiting between instructions gives the blocking power. All ranks must call the same
// functions in the same order. One owner; what it is given must outlive it.
class PipelineProfiler final : public TrainingCallback {
 public:
  struct Parts {
    EnergyMonitor& monitor;
    std::vector<std::size_t> devices;  // Of this rank, as positions in the monitor.
    Knob& knob;                        // Its settings; turned through the setter only.
    ClockSetter& setter;
    Collective& collective;
  };
  struct Options {
    PipelineRank rank{};
    pipeline::SweepRules rules{};
    Hertz stride = Hertz::FromMega(60);  // Between two clocks.
    int warm_up = 1;                     // Iterations before anything is measured.
    // Called before times are taken: waits until the GPU has done what was asked of it.
    std::function<void()> synchronize{};
  };
  PipelineProfiler(Parts parts, Options options);

  void OnInstructionBegin(std::string_view instruction) override;
  void OnInstructionEnd(std::string_view instruction) override;
  // Ends an iteration. Ranks exchange a few numbers.
  void OnStepEnd() override;

  // All is measured, or cannot be: trouble(). The same on all ranks at the same time.
  bool done() const { return done_; }
  std::optional<Error> trouble() const { return trouble_; }
  // Iterations that it took.
  int iterations() const { return all_iterations_; }

  // Of the whole pipeline, without dominated points. Once done; all ranks must ask.
  Result<pipeline::PipelineProfile> Gather();

 private:
  void Start();
  void Fail(Error error);
  // Whether something of it cannot be used, however long one measures.
  Status CheckUse(const StageMeter::Reading& reading) const;
  Status Proceed();
  Status ConcludeClock(StageMeter::Reading reading);
  void AddWaiting(const std::vector<double>& sums);
  std::string Rows() const;

  Parts parts_;
  const Options options_;
  Agreement ranks_;
  StageMeter meter_;
  std::optional<pipeline::ClockSweep> sweep_;
  Watts blocking_{};             // Of a rank's devices, over all ranks.
  std::vector<double> waiting_;  // Sums: weight times power, weight.
  int iterations_ = 0;           // At this clock.
  int all_iterations_ = 0;
  bool done_ = false;
  std::optional<Error> trouble_;
};

}  // namespace zeus
