#pragma once

#include <pybind11/pybind11.h>

// The parts of the extension module `zeus._core`, one function for each of its submodules.
// python/zeus/_core/*.pyi documents what they define, for people and for type checkers.
namespace zeus::python {

namespace py = pybind11;

void BindErrors(py::module_& core);
void BindMonitor(py::module_& core);  // _core.monitor: windows and their results
void BindDevice(py::module_& core);  // _core.device: GPUs, CPUs and rails: what can be read and set
void BindRecording(py::module_& core);  // _core.recording: power and temperature over time
void BindSim(py::module_& core);        // _core.sim: simulated nodes
void BindPowerLimit(
    py::module_& core);  // _core.power_limit: power limits just in time, selectors, profiles
void BindTraining(py::module_& core);   // _core.training: the loop around training
void BindBatchSize(py::module_& core);  // _core.batch_size: recurring jobs
void BindTrain(py::module_& core);      // _core.train: recurring jobs of foreign commands
void BindPipeline(py::module_& core);   // _core.pipeline: clocks of pipelines, and the planner
void BindMetrics(py::module_& core);    // _core.metrics: Prometheus
void BindCarbon(py::module_& core);     // _core.carbon: emissions and cost

}  // namespace zeus::python
