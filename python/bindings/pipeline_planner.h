#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>
#include <vector>

namespace zeus::python {

// For each stage, in order: its instructions with their clocks in MHz.
using NamedClocks = std::vector<std::vector<std::pair<std::string, double>>>;

// Binds Profile and Plan of _core.pipeline, the input and the result of planning.
void BindProfile(pybind11::module_& module);
void BindPlan(pybind11::module_& module);

// Binds Planner of _core.pipeline, which makes plans from profiles.
void BindPlanner(pybind11::module_& module);

}  // namespace zeus::python
