#pragma once

#include <Python.h>

namespace zeus::python {

// Releases the GIL for its lifetime, so that other Python threads can run while this one blocks.
//
// Python ends a daemon thread that reacquires the GIL while the interpreter is ending by
// pthread_exit(), which unwinds the stack. Hence a destructor that may throw, which that of
// pybind11's gil_scoped_release may not. If an exception is already in flight, nothing may throw:
// such a thread waits for the end of the process instead.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil() noexcept(false);
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  const int exceptions_;
  PyThreadState* const state_;
};

}  // namespace zeus::python
