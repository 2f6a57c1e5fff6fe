#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/monitor/energy_monitor.h"

namespace zeus::python {

namespace py = pybind11;

// Waits until the GPUs have done what a framework asked of them, if the program uses one: torch,
// JAX or CuPy. None is imported for it; one that the program imports later is noticed. What there
// is to wait for is up to zeus.utils.framework.synchronizer().
class Synchronizer {
 public:
  // `framework` is "torch", "jax" or "cupy", or empty for whichever is there.
  Synchronizer(const std::string& framework, std::vector<int> gpus);

  // Returns whether there was work to wait for, by the time that it took.
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
  // Nothing of ours that would have to be given back is held meanwhile: the interpreter's end may
  // end a daemon thread in there.
  void Call() const {
    PyObject* result = PyObject_CallNoArgs(function_.ptr());
    if (result == nullptr) throw py::error_already_set();
    Py_DECREF(result);
  }
  void LookForFramework();

  py::dict modules_;            // sys.modules
  std::vector<py::str> names_;  // That may still come.
  std::vector<int> gpus_;
  py::object function_;
};

}  // namespace zeus::python
