#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "zeus/training/callback.h"

namespace zeus {

// Callbacks that are told one after the other. An exception of one is logged, and from then on it
// is told nothing but the end of training, where it may put back what it changed. One owner.
class CallbackList {
 public:
  explicit CallbackList(const std::vector<TrainingCallback*>& callbacks);

  bool empty() const { return entries_.empty(); }

  void TrainBegin();
  void EpochBegin(std::int64_t epoch);
  void StepBegin();
  void StepEnd();
  void EpochEnd(std::int64_t epoch);
  void Evaluate(double metric);
  void TrainEnd();
  // Whether any of them wants to; those that failed are not asked.
  bool ShouldStop() const;

 private:
  struct Entry {
    TrainingCallback* callback;
    std::size_t position;  // As given.
    bool failed = false;
  };

  template <class Function>
  void Tell(const char* event, Function function);
  template <class Function>
  void TellOne(Entry& entry, const char* event, Function function);

  std::vector<Entry> entries_;
};

}  // namespace zeus
