#include "python/bindings/interrupts.h"

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "python/bindings/errors.h"
#include "python/bindings/without_gil.h"
#include "zeus/base/clock.h"

namespace zeus::python {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kBetweenLooks = 2ms;
constexpr Seconds kBetweenSignals = 50ms;
constexpr double kLongest = 1e9;  // Thirty years; clocks overflow beyond it.

}  // namespace

bool WaitUntil(const std::function<bool()>& done, double seconds) {
  if (!(seconds >= 0))
    throw Failure({ErrorCode::kInvalidArgument,
                   fmt::format("a timeout is 0 or more seconds, not {}", seconds)});
  SystemClock clock;
  const TimePoint deadline = clock.Now() + Seconds(std::min(seconds, kLongest));
  while (true) {
    {
      const WithoutGil released;
      const TimePoint look_up = std::min(deadline, clock.Now() + kBetweenSignals);
      while (true) {
        if (done()) return true;
        if (clock.Now() >= look_up) break;
        clock.SleepUntil(std::min(look_up, clock.Now() + kBetweenLooks));
      }
    }
    if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
    if (clock.Now() >= deadline) return false;
  }
}

namespace {

namespace py = pybind11;

int RaiseAgain(void* kept) {
  const auto exception = py::reinterpret_steal<py::object>(static_cast<PyObject*>(kept));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  return -1;
}

void Keep(const py::error_already_set& raised) {
  if (::gettid() == ::getpid()) {  // Only the main thread runs signal handlers and pending calls.
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
    return;  // It is a C++ exception.
  }
}

Error CaughtError(std::string_view doing) {
  Error error = CurrentPythonError(doing);
  KeepInterrupt();
  return error;
}

}  // namespace zeus::python
