#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "python/bindings/monitor.h"
#include "zeus/base/json_fwd.h"
#include "zeus/monitor/measurement.h"

namespace zeus::python {

namespace py = pybind11;

// A window's result as Python sees it. The numbers are converted when somebody asks for them: most
// programs look at a few of them only.
class MeasurementObject {
 public:
  explicit MeasurementObject(Measurement measurement, std::weak_ptr<Monitor> monitor = {})
      : measurement_(std::move(measurement)), monitor_(std::move(monitor)) {}

  const Measurement& get() const { return measurement_; }

  // Joules by index of the GPU ("gpu"), CPU ("cpu") or memory ("dram"), or by name of the "rail";
  // not a number where a device could not be read. None where there is no such device; {} for GPUs.
  py::object EnergyOf(const char* kind) const;

  // Waits until the sensors have shown what happened at its end, at most so many seconds.
  MeasurementObject Refined(double patience);

  std::string ToText() const;
  py::dict ToDict() const;
  std::string ToJson() const;
  Json AsJson() const;

  // From what ToDict() gave.
  static MeasurementObject FromDict(const py::dict& state);
  // From bare numbers, joules by index, of unknown uncertainty.
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
  std::shared_ptr<const Measurement>
      refined_;  // Null until it is known: the monitor tells it once.
};

void BindMeasurement(py::module_& module);

}  // namespace zeus::python
