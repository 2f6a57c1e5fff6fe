#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>
#include <vector>

namespace zeus::python {

// For each stage, in its order: instructions with their clocks in MHz.
using NamedClocks = std::vector<std::vector<std::pair<std::string, double>>>;

// Profile and Plan of _core.pipeline: what planning begins and ends with.
void BindProfile(pybind11::module_& module);
void BindPlan(pybind11::module_& module);

// Planner of _core.pipeline, which makes plans of profiles.
void BindPlanner(pybind11::module_& module);

}  // namespace zeus::python
