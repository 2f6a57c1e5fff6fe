#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <span>

// Fast paths for the calls that every step of a training makes. pybind11's dispatcher takes about
// as long as these calls themselves, so they are plain C methods that handle the simple case and
// leave everything else, errors included, to a method that goes through the dispatcher.
namespace zeus::python {

// Returns the shared_ptr that an instance holds; null if __init__ was not called.
template <class T>
std::shared_ptr<T>* HeldBy(PyObject* self) {
  auto place = reinterpret_cast<pybind11::detail::instance*>(self)->get_value_and_holder();
  return place.holder_constructed() ? &place.holder<std::shared_ptr<T>>() : nullptr;
}

// Adds methods to a class. The definitions must live as long as the class.
inline void AddMethods(const pybind11::handle& type, std::span<PyMethodDef> methods) {
  for (PyMethodDef& method : methods)
    type.attr(method.ml_name) = pybind11::reinterpret_steal<pybind11::object>(
        PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &method));
}

}  // namespace zeus::python
