#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "python/bindings/closeable.h"
#include "python/bindings/monitor.h"
#include "zeus/optimizer/power_limit/slice_meter.h"
#include "zeus/training/global_power_limit_optimizer.h"

namespace zeus::python {

namespace py = pybind11;

// Measures slices by a Python object with `begin(window)`, `end(window)`, which returns seconds and
// joules, and `cancel(window)`. Exceptions become errors. Not thread-safe.
class PythonSliceMeter final : public SliceMeter {
 public:
  explicit PythonSliceMeter(py::object object) : object_(std::move(object)) {}
  ~PythonSliceMeter() override;
  PythonSliceMeter(const PythonSliceMeter&) = delete;
  PythonSliceMeter& operator=(const PythonSliceMeter&) = delete;

  Status Begin(const std::string& label) override;
  Result<SliceReading> Peek() override;
  Result<Ticket> End() override;
  void Cancel() override;
  Result<SliceReading> Read(Ticket ticket) override;

 private:
  py::object object_;
  std::string open_;  // Name of the open window; empty: none is open.
  std::vector<SliceReading> readings_;
};

// The object behind Python's power limit optimisers. One thread at a time may use it; a second one
// gets an error. Exceptions of the user's functions become its trouble().
class JitOptimizer final : public Closeable {
 public:
  struct Options {
    std::shared_ptr<Monitor> monitor;
    Selector selector;
    JitOptions jit;
    py::object collective;  // See PythonCollective; None: a single process.
    py::object meter;       // See PythonSliceMeter; None: the monitor measures.
  };

  // Releases the GIL while it reads the knob and the ranks agree on the settings to try.
  explicit JitOptimizer(Options options);
  ~JitOptimizer() override { Close(); }

  void OnTrainBegin();
  void OnStepBegin();
  // A fast OnStepBegin() for when everything is decided; returns false if there is more to do.
  bool CountStep();
  void OnEpochEnd();
  void OnTrainEnd();

  // Throws Failure if the optimiser cannot be used: closed, forked, or in use by another thread.
  const GlobalPowerLimitOptimizer& get() const;
  bool done() const { return get().done(); }
  JobUse Used();
  SavingsReport Savings(std::size_t knob);
  Profile KnobProfile(std::size_t knob) const;

 private:
  struct Work;
  class Turn;

  void DoClose() override;
  void Abandon() override;

  std::shared_ptr<Monitor> monitor_;
  std::shared_ptr<Work> work_;
  std::optional<std::thread::id> owner_;  // The thread that uses it.
};

// Makes one of the built-in objectives: "energy", "time", "zeus_cost" (eta), "max_slowdown"
// (factor).
Selector MakeSelector(const std::string& objective, double parameter);

// `choose` gets a list of points, as ListPoints() returns them, and returns one of their settings.
Selector MakeSelector(const std::string& name, const py::function& choose);

// Returns (setting, energy, time, energy sigma, time sigma, steps) of each point, fastest first.
py::list ListPoints(const Profile& profile);

}  // namespace zeus::python
