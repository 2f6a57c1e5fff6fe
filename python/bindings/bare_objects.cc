#include "python/bindings/bare_objects.h"

#include <pybind11/pybind11.h>

#include <cstddef>
#include <string_view>

namespace zeus::python {
namespace {

namespace py = pybind11;

// pybind11 calls this only for an object without a value.
void* NoValue(std::size_t) {
  throw py::type_error("__init__() of the base class was not called for this object");
}

// Pickle protocols below 2 create an instance of pybind11's base class, which crashes the program.
py::object Reduce(const py::object& object, int protocol) {
  if (protocol < 2) throw py::type_error("pickle this object with protocol 2 or later");
  return py::module_::import("builtins").attr("object").attr("__reduce_ex__")(object, protocol);
}

bool IsOurs(const py::detail::type_info& type) {
  const py::object module = py::handle(reinterpret_cast<PyObject*>(type.type)).attr("__module__");
  return module.cast<std::string_view>().starts_with("zeus.");
}

}  // namespace

void RefuseBareObjects() {
  for (const auto& [_, type] : py::detail::get_internals().registered_types_cpp) {
    if (!IsOurs(*type)) continue;
    if (type->operator_new == nullptr) type->operator_new = &NoValue;
    const py::handle python(reinterpret_cast<PyObject*>(type->type));
    python.attr("__reduce_ex__") =
        py::cpp_function(&Reduce, py::name("__reduce_ex__"), py::is_method(python));
  }
}

}  // namespace zeus::python
