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

// Of one iteration, over all stages.
struct IterationFigures {
  Seconds time{0};
  Joules energy{};  // As the sensors show it.
  Joules exact{};
};

struct StragglerFigures {
  IterationFigures before{};  // The first iteration, in which it shows.
  IterationFigures after{};
  int iterations_until_new_plan = 0;  // Zero: there was none.
  Seconds pace{0};
};

// What came of a training.
struct StageOutcome {
  IterationFigures baseline{};
  IterationFigures planned{};
  CurrentPlan plan{};
  int clocks = 0;  // The most that were of use for an instruction.
  int profiling_iterations = 0;
  Watts blocking_power{};
  std::optional<StragglerFigures> straggler{};
};

// What a stage is connected with; null at the ends of the pipeline.
struct Neighbours {
  std::unique_ptr<Channel> left{};
  std::unique_ptr<Channel> right{};
};

// One stage of a pipeline that trains: computes on its GPU, sends and receives, measures. All
// stages do the same at the same time. One owner.
class StageTraining {
 public:
  StageTraining(const RunOptions& options, int stage, Neighbours neighbours, Collective& collective,
                StageGpu& gpu);

  // First as hardware does it, then measured, planned and as planned. `service` is of stage 0.
  Result<StageOutcome> Run(PlanService* service);

 private:
  Status Iterate();
  Status Perform(const pipeline::Instruction& instruction);
  Status Receive(Channel* from);
  Status Send(Channel* to);
  Status MeetAll();
  void LetTheClockSettle();
  Result<IterationFigures> Measure(const std::string& window, int iterations);
  Status TakeClock(PlanService* service);
  Status Plan(StageOutcome& outcome);
  Status Straggle(const Straggler& straggler, StageOutcome& outcome);
  sim::StepWork WorkOf(const std::string& instruction) const;

  const RunOptions options_;
  const int stage_;
  Neighbours neighbours_;
  Collective& collective_;
  StageGpu& gpu_;
  std::vector<pipeline::Instruction> schedule_;
  std::unique_ptr<PipelineFrequencyOptimizer> optimizer_;
  bool optimizes_ = false;  // Whether the optimiser is told what happens.
  double slowdown_ = 1;     // Of this stage.
};

}  // namespace zeus::examples
