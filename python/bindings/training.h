#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

#include "python/bindings/closeable.h"
#include "python/bindings/monitor.h"
#include "zeus/training/training_loop.h"

namespace zeus::python {

namespace py = pybind11;

// A Python callback as the loop around training sees it. Of what it has, events that are not there
// are left out. What it raises is thrown, KeyboardInterrupt besides is raised again in Python.
class PythonCallback final : public TrainingCallback {
 public:
  explicit PythonCallback(py::object object) : object_(std::move(object)) {}
  ~PythonCallback() override;
  PythonCallback(const PythonCallback&) = delete;
  PythonCallback& operator=(const PythonCallback&) = delete;

  void OnTrainBegin() override { Tell("on_train_begin"); }
  void OnEpochBegin(std::int64_t) override { Tell("on_epoch_begin"); }
  void OnStepBegin() override { Tell("on_step_begin"); }
  void OnStepEnd() override { Tell("on_step_end"); }
  void OnEpochEnd(std::int64_t) override { Tell("on_epoch_end"); }
  void OnEvaluate(double metric) override { Tell("on_evaluate", metric); }
  void OnTrainEnd() override { Tell("on_train_end"); }

 private:
  template <class... Arguments>
  void Tell(const char* event, Arguments... arguments);

  py::object object_;
};

// The loop around training, step by step: see zeus::TrainingLoop. One owner.
class Training final : public Closeable {
 public:
  // `options` without callbacks and collective.
  Training(std::shared_ptr<Monitor> monitor, TrainingOptions options, const py::list& callbacks,
           const py::object& collective);
  ~Training() override { Close(); }

  // Throws Failure when it is closed, and in a fork()ed child.
  TrainingLoop& loop() const;
  // These may wait, for sensors and for other ranks: without the GIL.
  bool BeginTraining();
  bool NextEpoch();
  void LeaveTraining(bool by_exception);
  TrainingSummary Summary(double patience);

 private:
  struct Work;

  void DoClose() override;
  void Abandon() override;

  std::shared_ptr<Monitor> monitor_;
  std::shared_ptr<Work> work_;
};

}  // namespace zeus::python
