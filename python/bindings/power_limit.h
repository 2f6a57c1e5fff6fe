#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "python/bindings/closeable.h"
#include "python/bindings/monitor.h"
#include "zeus/training/global_power_limit_optimizer.h"

namespace zeus::python {

namespace py = pybind11;

// What Python calls a power limit optimiser. One owner at a time: a second thread is refused while
// the first is in it. What its user's functions raise becomes its trouble().
class JitOptimizer final : public Closeable {
 public:
  struct Options {
    std::shared_ptr<Monitor> monitor;
    Selector selector;
    JitOptions jit;
    py::object collective;  // See PythonCollective; None: one process.
    py::object meter;       // See PythonSliceMeter; None: the monitor measures.
  };

  // Blocks, without the GIL: the knob is looked at, ranks agree on what to try.
  explicit JitOptimizer(Options options);
  ~JitOptimizer() override { Close(); }

  void OnTrainBegin();
  void OnStepBegin();
  // The same when everything is decided on, without delay; false if there is more to do.
  bool CountStep();
  void OnEpochEnd();
  void OnTrainEnd();

  // Throws Failure where the optimiser cannot be asked: closed, forked, or another thread is in it.
  const GlobalPowerLimitOptimizer& get() const;
  bool done() const { return get().done(); }
  JobUse Used();
  SavingsReport Savings(std::size_t knob);
  Profile ProfileOf(std::size_t knob) const;

 private:
  struct Work;
  class Turn;

  void DoClose() override;
  void Abandon() override;

  std::shared_ptr<Monitor> monitor_;
  std::shared_ptr<Work> work_;
  std::optional<std::thread::id> owner_;  // Who is in it.
};

// Of the built-in objectives: "energy", "time", "zeus_cost" (eta), "max_slowdown" (factor).
Selector SelectorOf(const std::string& objective, double parameter);

// `choose` takes a list of points, as PointsOf() gives them, and returns one of their settings.
Selector SelectorOf(const std::string& name, const py::function& choose);

// (setting, energy, time, energy sigma, time sigma, steps) of each point, fastest first.
py::list PointsOf(const Profile& profile);

}  // namespace zeus::python
