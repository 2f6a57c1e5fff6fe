#include "python/bindings/closeable.h"

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <vector>

#include "python/bindings/errors.h"
#include "zeus/base/clock.h"
#include "zeus/base/process.h"

namespace zeus::python {
namespace {

// The main thread ends the interpreter itself and continues meanwhile.
bool InterpreterEndsWithoutUs() {
  if (::gettid() == ::getpid()) return false;
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

}  // namespace

WithoutGil::WithoutGil() : exceptions_(std::uncaught_exceptions()), state_(PyEval_SaveThread()) {}

WithoutGil::~WithoutGil() noexcept(false) {
  if (std::uncaught_exceptions() > exceptions_)
    while (InterpreterEndsWithoutUs()) ::pause();
  PyEval_RestoreThread(state_);
}

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

namespace {

bool ended = false;

// All open objects in the order of their creation. Never destroyed, because the end of the
// interpreter may still access it.
std::vector<Closeable*>& Open() {
  static auto* const open = new std::vector<Closeable*>();
  return *open;
}

}  // namespace

Closeable::Closeable(const Closeable* upon)
    : upon_(upon), fork_generation_((WatchForks(), ForkGeneration())) {
  Open().push_back(this);
}

Closeable::~Closeable() { std::erase(Open(), this); }

bool Closeable::InForkedChild() const { return ForkGeneration() != fork_generation_; }

void Closeable::Close() {
  if (closed_) return;
  closed_ = true;
  if (InForkedChild()) return Abandon();
  // Closing releases the GIL and so may change the list: the next object is looked up anew each
  // time.
  const auto next = [this]() -> Closeable* {
    const auto& open = Open();
    const auto found = std::find_if(open.rbegin(), open.rend(), [this](const Closeable* other) {
      return other->upon_ == this && !other->closed_;
    });
    return found == open.rend() ? nullptr : *found;
  };
  while (Closeable* dependent = next()) dependent->Close();
  DoClose();
}

void Closeable::CheckOpen(const char* what) const {
  if (InForkedChild())
    throw Failure({ErrorCode::kConflict,
                   fmt::format("this {} belongs to the process that was forked: make one of your "
                               "own here",
                               what)});
  if (closed_)
    throw Failure({ErrorCode::kConflict, fmt::format("this {} is closed: make another one", what)});
}

void Closeable::CloseNewerThan(const Closeable& first) {
  // Closing may change the list: the newest object is looked up anew each time.
  const auto newest = [&first]() -> Closeable* {
    const auto& open = Open();
    const auto begin = std::find(open.begin(), open.end(), &first);
    for (auto next = open.end(); next != begin && --next != begin;)
      if (!(*next)->closed_) return *next;
    return nullptr;
  };
  while (Closeable* next = newest()) next->Close();
}

bool Closeable::Ended() { return ended; }

void Closeable::CloseAll() {
  ended = true;
  while (!Open().empty()) {
    Closeable* newest = Open().back();
    Open().pop_back();
    newest->Close();
  }
}

}  // namespace zeus::python
