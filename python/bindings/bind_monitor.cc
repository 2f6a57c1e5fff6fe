#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/errors.h"
#include "python/bindings/measurement.h"
#include "python/bindings/monitor.h"

namespace zeus::python {
namespace {

std::string_view WindowName(const py::handle& key) {
  Py_ssize_t size = 0;
  const char* text = nullptr;
  if (PyUnicode_Check(key.ptr())) text = PyUnicode_AsUTF8AndSize(key.ptr(), &size);
  if (text != nullptr) return {text, static_cast<std::size_t>(size)};
  if (PyErr_Occurred()) throw py::error_already_set();
  throw py::type_error(
      fmt::format("the name of a window is a string, not {}", Py_TYPE(key.ptr())->tp_name));
}

void BeginWindow(Monitor& monitor, const py::handle& key, bool sync_execution, bool restart) {
  const std::string_view name = WindowName(key);
  EnergyMonitor& energy = monitor.energy();
  if (sync_execution) monitor.synchronizer()();
  auto begun = energy.BeginWindow(
      name, {.if_open = restart ? IfOpen::kRestart : IfOpen::kRefuse, .synchronize = false});
  if (!begun.ok()) throw Failure(std::move(begun).error());
}

// No number: a window that somebody thought better of used nothing that could be told.
Measurement Cancelled(Measurement measurement) {
  for (DeviceMeasurement& device : measurement.devices)
    device.energy = Error{ErrorCode::kUnavailable, "the window was cancelled"};
  return measurement;
}

MeasurementObject EndWindow(const std::shared_ptr<Monitor>& monitor, const py::handle& key,
                            bool sync_execution, bool cancel) {
  const std::string_view name = WindowName(key);
  EnergyMonitor& energy = monitor->energy();
  if (cancel) {
    Measurement last = Unwrap(energy.PeekWindow(name));
    Check(energy.CancelWindow(name));
    return MeasurementObject(Cancelled(std::move(last)));
  }
  if (sync_execution) monitor->synchronizer()();
  auto ended = energy.EndWindow(name);
  if (!ended.ok()) throw Failure(std::move(ended).error());
  monitor->Log(ended.value());
  return MeasurementObject(std::move(ended).value(), monitor);
}

std::vector<std::string> DeviceNames(const Monitor& monitor) {
  std::vector<std::string> names;
  const EnergyMonitor& energy = monitor.energy();
  for (std::size_t i = 0; i < energy.device_count(); ++i) names.push_back(energy.device_name(i));
  return names;
}

std::vector<py::tuple> AbsentDevices(const Monitor& monitor) {
  std::vector<py::tuple> absent;
  for (const Absence& absence : monitor.absent())
    absent.push_back(py::make_tuple(absence.what, absence.reason, absence.fix));
  return absent;
}

std::shared_ptr<Monitor> OpenMonitor(std::optional<std::vector<unsigned>> gpus,
                                     std::optional<std::vector<unsigned>> cpus, bool share,
                                     std::string log_file, const std::string& framework) {
  return Monitor::Open({.gpus = std::move(gpus),
                        .cpus = std::move(cpus),
                        .share = share,
                        .log_file = std::move(log_file),
                        .framework = framework});
}

}  // namespace

void BindMonitor(py::module_& core) {
  py::module_ module = core.def_submodule("monitor");
  BindMeasurement(module);
  py::class_<Monitor, std::shared_ptr<Monitor>>(module, "Monitor")
      .def(py::init(&OpenMonitor), py::arg("gpus"), py::arg("cpus"), py::arg("share"),
           py::arg("log_file"), py::arg("framework"))
      .def("begin_window", &BeginWindow, py::arg("key"), py::arg("sync_execution") = true,
           py::arg("restart") = false)
      .def("end_window", &EndWindow, py::arg("key"), py::arg("sync_execution") = true,
           py::arg("cancel") = false)
      .def(
          "peek_window",
          [](const std::shared_ptr<Monitor>& monitor, const py::handle& key) {
            return MeasurementObject(Unwrap(monitor->energy().PeekWindow(WindowName(key))));
          },
          py::arg("key"))
      .def("reset_windows", [](Monitor& monitor) { monitor.energy().CancelAllWindows(); })
      .def("close", &Monitor::Close)
      .def_property_readonly("closed", &Monitor::closed)
      .def_property_readonly("device_names", &DeviceNames)
      .def_property_readonly("absent", &AbsentDevices);
}

}  // namespace zeus::python
