#pragma once

#include <pybind11/pybind11.h>

namespace zeus::python {

// Planner of _core.pipeline, which makes plans of profiles.
void BindPlanner(pybind11::module_& module);

}  // namespace zeus::python
