#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "zeus/optimizer/power_limit/slice_meter.h"

namespace zeus::python {

namespace py = pybind11;

// Measures slices by a Python object with `begin(window)`, `end(window)`, which returns seconds and
// joules, and `cancel(window)`. Exceptions become errors. Not thread-safe.
class PythonSliceMeter final : public SliceMeter {
 public:
  explicit PythonSliceMeter(py::object object) : object_(std::move(object)) {}
  ~PythonSliceMeter() override;
  PythonSliceMeter(const PythonSliceMeter&) = delete;
  PythonSliceMeter& operator=(const PythonSliceMeter&) = delete;

  Status Begin(const std::string& label) override;
  Result<SliceReading> Peek() override;
  Result<Ticket> End() override;
  void Cancel() override;
  Result<SliceReading> Read(Ticket ticket) override;

 private:
  py::object object_;
  std::string open_;  // Name of the open window; empty: none is open.
  std::vector<SliceReading> readings_;
};

}  // namespace zeus::python
