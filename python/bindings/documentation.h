#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <iterator>

namespace zeus::python {

// The words of a stub (zeus/_core/*.pyi) about one class, function or property.
struct Documentation {
  const char* owner;  // "monitor.Measurement", or a submodule, or empty for the module itself.
  const char* name;
  const char* text;  // A function's begins with its signature, as CPython's own functions have it.
};

// Generated from the stubs by python/documentation.py.
extern const Documentation kDocumentation[];
extern const std::size_t kDocumentationSize;

// Gives every class, function and property of the module the words of the stubs, for help() and
// inspect.signature(). A stub that documents something that does not exist is an error.
void Document(pybind11::module_& core);

}  // namespace zeus::python
