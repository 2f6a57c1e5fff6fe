#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "python/bindings/monitor.h"
#include "zeus/base/json_fwd.h"
#include "zeus/monitor/measurement.h"

namespace zeus::python {

// Makes objects whose __init__() was not called, as by a subclass that forgets it, raise an
// exception when they are used. pybind11 alone would read uninitialised memory.
void RefuseBareObjects();

namespace py = pybind11;

// The result of a window for Python. Numbers are converted when they are accessed, because most
// programs use only a few of them.
class MeasurementObject {
 public:
  explicit MeasurementObject(Measurement measurement, std::weak_ptr<Monitor> monitor = {})
      : measurement_(std::move(measurement)), monitor_(std::move(monitor)) {}

  const Measurement& get() const { return measurement_; }

  // Returns joules by index of the GPU ("gpu"), CPU ("cpu") or memory ("dram"), or by name of the
  // "rail"; NaN for a device that could not be read. None if there is no such device; {} for GPUs.
  py::object EnergyByKind(const char* kind) const;

  // Waits, at most `timeout` seconds, until the sensors have shown the end of the window.
  MeasurementObject Refined(double timeout);

  std::string ToText() const;
  py::dict ToDict() const;
  std::string ToJson() const;
  Json AsJson() const;

  // Restores an object from the result of ToDict().
  static MeasurementObject FromDict(const py::dict& state);
  // Makes a result from plain numbers, joules by index, without uncertainty.
  struct Numbers {
    py::object gpu;
    py::object cpu;
    py::object dram;
    py::object soc;
  };
  static MeasurementObject FromNumbers(double time, const Numbers& numbers, std::string window);

 private:
  Measurement measurement_;
  std::weak_ptr<Monitor> monitor_;
  std::shared_ptr<const Measurement> refined_;  // Kept because the monitor returns it only once.
};

void BindMeasurement(py::module_& module);

}  // namespace zeus::python
