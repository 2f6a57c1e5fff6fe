#include "python/bindings/interrupts.h"

#include <pybind11/pybind11.h>

namespace zeus::python {

void KeepInterrupt() {
  try {
    throw;
  } catch (const pybind11::error_already_set& raised) {
    if (raised.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
  } catch (...) {
    return;  // Of C++.
  }
}

}  // namespace zeus::python
