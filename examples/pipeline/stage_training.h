#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "examples/pipeline/channel.h"
#include "examples/pipeline/options.h"
#include "examples/pipeline/stage_gpu.h"
#include "zeus/optimizer/collective.h"
#include "zeus/optimizer/pipeline/schedule.h"
#include "zeus/training/pipeline/pipeline_frequency_optimizer.h"

namespace zeus::examples {

// Mean time of an iteration, and its mean energy over all stages.
struct IterationFigures {
  Seconds time{0};
  Joules energy{};  // From the sensors.
  Joules exact{};   // From the simulation, without the errors of sensors.
};

struct StragglerFigures {
  IterationFigures before{};  // The first iteration of the straggler.
  IterationFigures after{};
  int iterations_until_new_plan = 0;  // 0: no new plan arrived.
  Seconds pace{0};
};

struct StageOutcome {
  IterationFigures baseline{};
  IterationFigures planned{};
  CurrentPlan plan{};
  int clocks = 0;  // The largest number of useful clocks of any instruction.
  int profiling_iterations = 0;
  Watts blocking_power{};
  std::optional<StragglerFigures> straggler{};
};

// Channels to the stages before and after; null at the ends of the pipeline.
struct Neighbours {
  std::unique_ptr<Channel> left{};
  std::unique_ptr<Channel> right{};
};

// One stage of a pipeline that trains: it computes on its GPU, sends, receives and measures. All
// stages run the same steps at the same time. Not thread-safe.
class StageTraining {
 public:
  StageTraining(const RunOptions& options, int stage, Neighbours neighbours, Collective& collective,
                StageGpu& gpu);

  // Trains first at the clocks that the hardware chooses, then profiles, plans, and trains as
  // planned. Only stage 0 has a `service`; it is null elsewhere.
  Result<StageOutcome> Run(PlanService* service);

 private:
  Status Iterate();
  Status Perform(const pipeline::Instruction& instruction);
  Status Receive(Channel* from);
  Status Send(Channel* to);
  Status MeetAll();
  void LetTheClockSettle();
  Result<IterationFigures> Measure(const std::string& window, int iterations);
  Status AcquireClock(PlanService* service);
  Status Plan(StageOutcome& outcome);
  Status Straggle(const Straggler& straggler, StageOutcome& outcome);
  sim::StepWork InstructionWork(const std::string& instruction) const;

  const RunOptions options_;
  const int stage_;
  Neighbours neighbours_;
  Collective& collective_;
  StageGpu& gpu_;
  std::vector<pipeline::Instruction> schedule_;
  std::unique_ptr<PipelineFrequencyOptimizer> optimizer_;
  bool optimizes_ = false;  // Whether the optimiser observes the instructions.
  double slowdown_ = 1;     // Factor on the work of this stage.
};

}  // namespace zeus::examples
