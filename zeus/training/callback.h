#pragma once

#include <cstdint>
#include <string_view>

namespace zeus {

// Told about the course of a training. All functions do nothing unless overridden, and nothing that
// happens in them stops the training.
class TrainingCallback {
 public:
  virtual ~TrainingCallback() = default;

  virtual void OnTrainBegin() {}
  virtual void OnEpochBegin(std::int64_t /*epoch*/) {}
  virtual void OnStepBegin() {}
  virtual void OnStepEnd() {}
  // Of a pipeline stage: "forward", "backward", …, within a step. Called by the program itself.
  virtual void OnInstructionBegin(std::string_view /*instruction*/) {}
  virtual void OnInstructionEnd(std::string_view /*instruction*/) {}
  virtual void OnEpochEnd(std::int64_t /*epoch*/) {}
  // The validation metric of the epoch that just ended.
  virtual void OnEvaluate(double /*metric*/) {}
  virtual void OnTrainEnd() {}

  // Asked after each epoch; true ends the training. All ranks must answer alike.
  virtual bool ShouldStop() const { return false; }
};

}  // namespace zeus
