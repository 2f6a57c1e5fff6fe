#include "python/bindings/without_gil.h"

#include <unistd.h>

#include <exception>

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

}  // namespace zeus::python
