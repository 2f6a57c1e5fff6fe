#include "python/bindings/slice_meter.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <cmath>
#include <utility>

#include "python/bindings/errors.h"
#include "python/bindings/interrupts.h"
#include "zeus/optimizer/power_limit/monitor_slice_meter.h"

namespace zeus::python {
PythonSliceMeter::~PythonSliceMeter() {
  const py::gil_scoped_acquire acquired;
  object_ = {};
}

Status PythonSliceMeter::Begin(const std::string& label) {
  const py::gil_scoped_acquire acquired;
  const std::string window = SliceWindowName(label);
  try {
    object_.attr("begin")(window);
  } catch (const std::exception&) {
    return CaughtError("begin a window of the monitor");
  }
  open_ = window;
  return Ok();
}

Result<SliceReading> PythonSliceMeter::Peek() {
  return Error{ErrorCode::kNotSupported, "a window of this monitor tells nothing before its end"};
}

Result<SliceMeter::Ticket> PythonSliceMeter::End() {
  const py::gil_scoped_acquire acquired;
  try {
    const auto [time, energy] =
        object_.attr("end")(std::exchange(open_, {})).cast<std::pair<double, double>>();
    if (!(time > 0) || !(energy >= 0) || std::isinf(time) || std::isinf(energy))
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the monitor says that a window took {} J and {} s", energy, time)};
    readings_.push_back({.time = Seconds(time), .energy = Joules(energy)});
  } catch (const std::exception&) {
    return CaughtError("end a window of the monitor");
  }
  return Ticket(readings_.size() - 1);
}

void PythonSliceMeter::Cancel() {
  if (open_.empty()) return;
  const py::gil_scoped_acquire acquired;
  try {
    object_.attr("cancel")(std::exchange(open_, {}));
  } catch (const std::exception&) {
    // The result of the window is not needed any more, so other exceptions are ignored.
    KeepInterrupt();
  }
}

Result<SliceReading> PythonSliceMeter::Read(Ticket ticket) {
  return readings_[static_cast<std::size_t>(ticket)];
}

}  // namespace zeus::python
