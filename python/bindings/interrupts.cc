#include "python/bindings/interrupts.h"

#include <pybind11/pybind11.h>
#include <unistd.h>

#include "python/bindings/errors.h"

namespace zeus::python {
namespace {

namespace py = pybind11;

int RaiseAgain(void* kept) {
  const auto exception = py::reinterpret_steal<py::object>(static_cast<PyObject*>(kept));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  return -1;
}

void Keep(const py::error_already_set& raised) {
  if (::gettid() == ::getpid()) {  // Where handlers of signals run, and calls that are pending.
    PyObject* exception = py::object(raised.value()).release().ptr();
    if (Py_AddPendingCall(&RaiseAgain, exception) != 0) PyErr_SetInterrupt();
    return;
  }
  PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), raised.type().ptr());
}

}  // namespace

void KeepInterrupt() {
  try {
    throw;
  } catch (const py::error_already_set& raised) {
    if (!raised.matches(PyExc_Exception)) Keep(raised);
  } catch (...) {
    return;  // Of C++.
  }
}

Error CaughtError(std::string_view doing) {
  Error error = CurrentPythonError(doing);
  KeepInterrupt();
  return error;
}

}  // namespace zeus::python
