#include "python/bindings/errors.h"

#include <fmt/format.h>

#include "python/bindings/bind.h"

namespace zeus::python {
namespace {

const char* CodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kConflict:
      return "conflict";
    case ErrorCode::kNotSupported:
      return "not_supported";
    case ErrorCode::kPermissionDenied:
      return "permission_denied";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

const char* FamilyName(Family family) {
  switch (family) {
    case Family::kGeneral:
      return "general";
    case Family::kGpu:
      return "gpu";
    case Family::kCpu:
      return "cpu";
  }
  return "general";
}

// zeus.errors._FAMILIES: exceptions by family and code. Held for good, see Raise().
PyObject* families = nullptr;

// The class of the exception, if it is one that needs no more than the message; null otherwise.
PyObject* PlainClassFor(const Failure& failure) {
  PyObject* family = PyDict_GetItemString(families, FamilyName(failure.family()));
  if (family == nullptr) return nullptr;
  PyObject* found = PyDict_GetItemString(family, CodeName(failure.error().code));
  return found != nullptr && PyExceptionClass_Check(found) ? found : nullptr;
}

void Raise(const Failure& failure) {
  // Without a step of the interpreter, or an import, where that will do: it may end a daemon thread
  // at any, and this is called where C++ handles an exception, which no thread survives.
  if (PyObject* plain = PlainClassFor(failure)) {
    PyErr_SetString(plain, failure.what());
    return;
  }
  const py::object exception = ExceptionOf(failure.error(), failure.family());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
}

}  // namespace

void BindErrors(py::module_&) {
  families = py::object(py::module_::import("zeus.errors").attr("_FAMILIES")).release().ptr();
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Failure& failure) {
      try {
        Raise(failure);
      } catch (py::error_already_set& broken) {
        broken.restore();
      }
    }
  });
}

py::object ExceptionOf(const Error& error, Family family) {
  return py::module_::import("zeus.errors")
      .attr("exception_for")(CodeName(error.code), error.message, FamilyName(family));
}

Error CurrentPythonError(std::string_view doing) {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.error().While(doing);
  } catch (const std::exception& failure) {
    // One sentence: without the places through which a Python exception came.
    std::string_view what = failure.what();
    what = what.substr(0, what.find("\n\nAt:"));
    return {ErrorCode::kInternal, fmt::format("{}: {}", doing, what)};
  }
}

}  // namespace zeus::python
