#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/monitor/energy_monitor.h"

namespace zeus::python {

namespace py = pybind11;

// Waits until the GPUs have finished the work of a framework that the program uses: torch, JAX or
// CuPy. It imports none itself, but notices one that the program imports later.
// zeus.utils.framework.synchronizer() decides how to wait.
class Synchronizer {
 public:
  // `framework` is "torch", "jax" or "cupy"; empty: any that is imported.
  Synchronizer(const std::string& framework, std::vector<int> gpus);

  // Returns whether there was work to wait for, judged by the time it took.
  bool operator()(const Clock& clock) {
    if (!function_ && names_.empty()) return false;
    const TimePoint called = clock.Now();
    (*this)();
    return WindowEndAfter(clock.Now() - called) == WindowEnd::kWorkEnded;
  }
  void operator()() {
    if (function_) {
      Call();
    } else if (!names_.empty()) {
      LookForFramework();
    }
  }

 private:
  // No C++ object may own a reference meanwhile: the end of the interpreter may end a daemon thread
  // inside the call.
  void Call() const {
    PyObject* result = PyObject_CallNoArgs(function_.ptr());
    if (result == nullptr) throw py::error_already_set();
    Py_DECREF(result);
  }
  void LookForFramework();

  py::dict modules_;            // sys.modules
  std::vector<py::str> names_;  // Frameworks that may still be imported.
  std::vector<int> gpus_;
  py::object function_;
};

}  // namespace zeus::python
