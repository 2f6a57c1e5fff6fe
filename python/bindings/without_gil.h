#pragma once

#include <Python.h>

namespace zeus::python {

// Lets other Python threads run while this one blocks.
//
// A daemon thread that comes back when the interpreter is about to end is ended by it
// (pthread_exit), which unwinds the stack: hence a destructor that may throw, which that of
// pybind11's gil_scoped_release may not. While an exception passes nothing may: such a thread waits
// for the end of the process instead.
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
