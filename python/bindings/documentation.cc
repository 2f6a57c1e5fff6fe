#include "python/bindings/documentation.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace zeus::python {

namespace py = pybind11;

namespace {

constexpr std::string_view kEndOfSignature = "\n--\n\n";

// Text without the signature, which CPython shows for functions by itself.
const char* WithoutSignature(const char* text) {
  const char* const end = std::strstr(text, kEndOfSignature.data());
  return end == nullptr ? text : end + kEndOfSignature.size();
}

py::object Find(const py::module_& core, std::string_view path) {
  py::object found = core;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    found = found.attr(std::string(path.substr(0, dot)).c_str());
    path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
  }
  return found;
}

void DocumentClass(PyTypeObject* type, const char* text) {
  const py::handle handle(reinterpret_cast<PyObject*>(type));
  // pybind11's enumerations compute their text, with all values, and it cannot be replaced.
  const py::dict members = handle.attr("__dict__");
  if (members.contains("__doc__") && !py::isinstance<py::str>(members["__doc__"]) &&
      !members["__doc__"].is_none())
    return;
  handle.attr("__doc__") = WithoutSignature(text);
  // CPython takes the signature of a native class from here, and frees it with the class.
  const std::size_t size = std::strlen(text) + 1;
  auto* const copy = static_cast<char*>(PyObject_Malloc(size));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text, size);
  PyObject_Free(const_cast<char*>(type->tp_doc));
  type->tp_doc = copy;
}

// CPython removes "self" from the signature of a bound method of its own if it is marked. The copy
// lives as long as the method, which is static.
const char* WithMarkedSelf(const char* text) {
  auto* const marked = new std::string(text);
  marked->insert(marked->find('(') + 1, 1, '$');
  return marked->c_str();
}

// pybind11 owns the text of its functions and frees it.
void DocumentFunction(PyObject* function, const char* text) {
  PyMethodDef* const method = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
  std::free(const_cast<char*>(method->ml_doc));
  method->ml_doc = ::strdup(text);
}

void DocumentMember(PyObject* member, const char* text) {
  if (PyInstanceMethod_Check(member)) member = PyInstanceMethod_Function(member);
  if (PyCFunction_Check(member)) {
    DocumentFunction(member, text);
  } else if (Py_TYPE(member) == &PyMethodDescr_Type) {  // fast_calls.h has these.
    reinterpret_cast<PyMethodDescrObject*>(member)->d_method->ml_doc = WithMarkedSelf(text);
  } else if (Py_TYPE(member) == &PyStaticMethod_Type) {
    DocumentMember(py::handle(member).attr("__func__").ptr(), text);
  } else if (PyType_Check(member)) {
    DocumentClass(reinterpret_cast<PyTypeObject*>(member), text);
  } else {  // A property.
    py::handle(member).attr("__doc__") = text;
  }
}

}  // namespace

void Document(py::module_& core) {
  for (std::size_t i = 0; i < kDocumentationSize; ++i) {
    const Documentation& entry = kDocumentation[i];
    const py::object owner = Find(core, entry.owner);
    // A member of a class is documented where the class itself has it.
    const py::dict members = owner.attr("__dict__");
    if (!members.contains(entry.name))
      throw std::runtime_error(std::string("a stub documents what does not exist: ") + entry.owner +
                               "." + entry.name);
    DocumentMember(py::object(members[entry.name]).ptr(), entry.text);
  }
}

}  // namespace zeus::python
