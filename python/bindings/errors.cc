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

// zeus.errors._FAMILIES: exceptions by family and code. Never released, see ClassFor().
PyObject* families = nullptr;

// Returns the first of several classes whose words occur in the message.
PyObject* KindFor(PyObject* kinds, const std::string& message) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kinds); ++i) {
    PyObject* kind = PyTuple_GET_ITEM(kinds, i);
    const char* words = PyUnicode_AsUTF8(PyTuple_GET_ITEM(kind, 0));
    if (message.find(words) != std::string::npos) return PyTuple_GET_ITEM(kind, 1);
  }
  return PyExc_RuntimeError;  // Not reached: the last class has no words.
}

// Returns the class of the exception without executing Python code or an import: either may end a
// daemon thread, and no thread survives that while C++ handles an exception.
PyObject* ClassFor(const Error& error, Family family_of_device) {
  PyObject* family = PyDict_GetItemString(families, FamilyName(family_of_device));
  if (family == nullptr) family = PyDict_GetItemString(families, FamilyName(Family::kGeneral));
  PyObject* found = PyDict_GetItemString(family, CodeName(error.code));
  return PyTuple_Check(found) ? KindFor(found, error.message) : found;
}

}  // namespace

void BindErrors(py::module_&) {
  families = py::object(py::module_::import("zeus.errors").attr("_FAMILIES")).release().ptr();
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Failure& failure) {
      PyErr_SetString(ClassFor(failure.error(), failure.family()), failure.what());
    }
  });
}

py::object MakeException(const Error& error, Family family) {
  return py::handle(ClassFor(error, family))(error.message);
}

Error CurrentPythonError(std::string_view doing) {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.error().While(doing);
  } catch (const std::exception& failure) {
    // One sentence is enough: the traceback that pybind11 appends is cut off.
    std::string_view what = failure.what();
    what = what.substr(0, what.find("\n\nAt:"));
    return {ErrorCode::kInternal, fmt::format("{}: {}", doing, what)};
  }
}

}  // namespace zeus::python
