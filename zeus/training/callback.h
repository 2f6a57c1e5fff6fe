#pragma once

#include <cstdint>
#include <string_view>

namespace zeus {

// Called at the events of a training. The functions do nothing unless they are overridden. A
// TrainingLoop catches their exceptions, so that none of them stops the training.
class TrainingCallback {
 public:
  virtual ~TrainingCallback() = default;

  virtual void OnTrainBegin() {}
  virtual void OnEpochBegin(std::int64_t /*epoch*/) {}
  virtual void OnStepBegin() {}
  virtual void OnStepEnd() {}
  // Instructions of a pipeline stage within a step: "forward", "backward", … The program itself
  // makes these calls.
  virtual void OnInstructionBegin(std::string_view /*instruction*/) {}
  virtual void OnInstructionEnd(std::string_view /*instruction*/) {}
  virtual void OnEpochEnd(std::int64_t /*epoch*/) {}
  // Called with the validation metric of the epoch that just ended.
  virtual void OnEvaluate(double /*metric*/) {}
  virtual void OnTrainEnd() {}

  // Called after each epoch; true ends the training. All ranks must return the same.
  virtual bool ShouldStop() const { return false; }
};

}  // namespace zeus
