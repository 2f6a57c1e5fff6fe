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
#include "zeus/optimizer/collective.h"
#include "zeus/optimizer/pipeline/clock_sweep.h"
#include "zeus/optimizer/pipeline/profile.h"
#include "zeus/training/callback.h"
#include "zeus/training/pipeline/clock_setter.h"

namespace zeus {

// The place of a process in a job that is data, pipeline and tensor parallel.
struct PipelineRank {
  int dp_rank = 0;  // Replica of the pipeline.
  int pp_rank = 0;  // Stage of the pipeline.
  int tp_rank = 0;  // Part of the stage.
  int dp_degree = 1;
  int pp_degree = 1;
  int tp_degree = 1;
};

// Measures the instructions of a stage while its clock stays the same: their times from the calls
// at their begin and end, their powers from the updates of the devices' sensors
// (pipeline::PowerAttribution). The time between instructions is waiting. One owner; the monitor
// must outlive it and must be recording.
class StageMeter {
 public:
  // `devices` holds positions in the monitor.
  StageMeter(EnergyMonitor& monitor, std::vector<std::size_t> devices);

  // Drops all measurements because the clock changes; the next `instructions` are not counted.
  void StartOver(int instructions);

  void Begin(std::string_view instruction);
  // Ignored without a Begin() of the same name before it.
  void End(std::string_view instruction);

  struct Reading {
    std::vector<pipeline::InstructionEstimate> instructions{};  // In order of first occurrence.
    pipeline::WaitingEstimate waiting{};
  };
  Reading Read() const;

 private:
  struct Span {
    std::size_t kind;
    TimePoint begin;
    TimePoint end;
  };

  std::size_t KindIndex(std::string_view instruction);
  // Returns the time of each kind of instruction between `begin` and `end`, then that of waiting.
  // `first` is the first span that may overlap, and is moved on for the next call.
  std::vector<Seconds> Exposure(TimePoint begin, TimePoint end, std::size_t& first) const;
  void AddPowers(std::size_t device, Reading& reading) const;

  EnergyMonitor& monitor_;
  const std::vector<std::size_t> devices_;
  std::vector<std::string> kinds_;
  std::vector<Span> spans_;
  std::optional<Span> open_;
  TimePoint from_;
  int skipped_ = 0;  // Number of further instructions that are not counted.
};

// Measures the instructions of a pipeline during its first iterations. All stages go through their
// clocks together, from the highest downwards. Each clock takes as many iterations as the least
// precise stage needs, and the sweep ends when lower clocks do not reduce the effective energy of
// any instruction (ClockSweep). The power between instructions is the blocking power. All ranks
// must call the same functions in the same order. One owner; the parts must outlive it.
class PipelineProfiler final : public TrainingCallback {
 public:
  struct Parts {
    EnergyMonitor& monitor;
    std::vector<std::size_t> devices;  // Positions of this rank's devices in the monitor.
    Knob& knob;                        // Gives the settings; it is set through `setter` only.
    ClockSetter& setter;
    Collective& collective;
  };
  struct Options {
    PipelineRank rank{};
    pipeline::SweepRules rules{};
    Hertz stride = Hertz::FromMega(60);  // Distance between two clocks.
    int warm_up = 1;                     // Iterations before anything is measured.
    // Called before times are measured; it must wait until the GPU has finished its work.
    std::function<void()> synchronize{};
  };
  PipelineProfiler(Parts parts, Options options);

  void OnInstructionBegin(std::string_view instruction) override;
  void OnInstructionEnd(std::string_view instruction) override;
  // Ends an iteration. Ranks exchange a few numbers.
  void OnStepEnd() override;

  // Whether everything is measured, or profiling failed (see trouble()). It changes on all ranks in
  // the same iteration.
  bool done() const { return done_; }
  std::optional<Error> trouble() const { return trouble_; }
  // Number of iterations so far.
  int iterations() const { return all_iterations_; }

  // Returns the profile of the whole pipeline without dominated points. To be called by all ranks
  // when done().
  Result<pipeline::PipelineProfile> Gather();

 private:
  void Start();
  void Fail(Error error);
  // Returns an error if the reading is unusable although the sweep takes it for precise enough.
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
  Watts blocking_{};             // Blocking power of one rank's devices, from all ranks.
  std::vector<double> waiting_;  // Sum of weight times power, and sum of weights.
  int iterations_ = 0;           // Iterations at this clock.
  int all_iterations_ = 0;
  bool done_ = false;
  std::optional<Error> trouble_;
};

}  // namespace zeus
