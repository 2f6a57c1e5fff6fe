#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/errors.h"
#include "python/bindings/fast_calls.h"
#include "python/bindings/measurement.h"
#include "python/bindings/monitor.h"

namespace zeus::python {
namespace {

std::string_view WindowName(const py::handle& key) {
  Py_ssize_t size = 0;
  const char* text = nullptr;
  if (PyUnicode_Check(key.ptr())) text = PyUnicode_AsUTF8AndSize(key.ptr(), &size);
  if (text != nullptr) return {text, static_cast<std::size_t>(size)};
  if (PyErr_Occurred()) {
    PyErr_Clear();
    throw Failure({ErrorCode::kInvalidArgument,
                   "the name of a window has a character that no text has (a lone surrogate)"});
  }
  throw py::type_error(
      fmt::format("the name of a window is a string, not {}", Py_TYPE(key.ptr())->tp_name));
}

void BeginWindow(Monitor& monitor, const py::handle& key, bool sync_execution, bool restart) {
  const std::string_view name = WindowName(key);
  monitor.CheckOpen("monitor");
  // Python code runs meanwhile, and another thread may close the monitor.
  const WindowEnd before = sync_execution ? monitor.Synchronize() : WindowEnd::kPlain;
  auto begun =
      monitor.energy().BeginWindow(name, {.if_open = restart ? IfOpen::kRestart : IfOpen::kRefuse,
                                          .synchronize = false,
                                          .at_begin = before});
  if (!begun.ok()) throw Failure(std::move(begun).error());
}

// Removes the numbers: the energy of a cancelled window has no meaning.
Measurement Cancelled(Measurement measurement) {
  for (DeviceMeasurement& device : measurement.devices)
    device.energy = Error{ErrorCode::kUnavailable, "the window was cancelled"};
  return measurement;
}

MeasurementObject EndWindow(const std::shared_ptr<Monitor>& monitor, const py::handle& key,
                            bool sync_execution, bool cancel) {
  const std::string_view name = WindowName(key);
  if (cancel) {
    Measurement last = Unwrap(monitor->energy().PeekWindow(name));
    Check(monitor->energy().CancelWindow(name));
    return MeasurementObject(Cancelled(std::move(last)));
  }
  monitor->CheckOpen("monitor");
  const WindowEnd end = sync_execution ? monitor->Synchronize() : WindowEnd::kPlain;
  auto ended = monitor->energy().EndWindow(name, end);
  if (!ended.ok()) throw Failure(std::move(ended).error());
  // A full disk must not lose the measurement, so it only causes a warning.
  if (const Status logged = monitor->Log(ended.value()); !logged.ok()) {
    if (PyErr_WarnEx(PyExc_RuntimeWarning, logged.error().message.c_str(), 1) != 0)
      throw py::error_already_set();
  }
  return MeasurementObject(std::move(ended).value(), monitor);
}

// begin_window(name) and end_window(name) are called in every step, so they avoid pybind11's
// dispatcher. This calls the full method for everything but the simple case.
PyObject* CallFully(PyObject* self, const char* method, PyObject* const* arguments,
                    Py_ssize_t count, PyObject* names) {
  PyObject* function = PyObject_GetAttrString(self, method);
  if (function == nullptr) return nullptr;
  // No C++ object may own the reference: a daemon thread may be ended inside by the end of the
  // interpreter.
  PyObject* result =
      PyObject_Vectorcall(function, arguments, static_cast<std::size_t>(count), names);
  Py_DECREF(function);
  return result;
}

// Returns null when the monitor is closed or was never opened.
std::shared_ptr<Monitor>* FindOpenMonitor(PyObject* self) {
  std::shared_ptr<Monitor>* monitor = HeldBy<Monitor>(self);
  if (monitor == nullptr || (*monitor)->closed() || (*monitor)->InForkedChild()) return nullptr;
  return monitor;
}

std::string_view NameOrEmpty(PyObject* key) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, &size) : nullptr;
  if (text == nullptr) PyErr_Clear();
  return {text == nullptr ? "" : text, static_cast<std::size_t>(size)};
}

PyObject* FastBegin(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  std::shared_ptr<Monitor>* monitor = FindOpenMonitor(self);
  if (monitor != nullptr && count == 1 && names == nullptr) {
    try {
      const WindowEnd before = (*monitor)->Synchronize();
      const std::string_view name = NameOrEmpty(arguments[0]);
      if (!name.empty() &&
          (*monitor)->energy().BeginWindow(name, {.synchronize = false, .at_begin = before}).ok())
        Py_RETURN_NONE;
    } catch (py::error_already_set& raised) {  // Raised by the framework.
      raised.restore();
      return nullptr;
      // Another thread closed the monitor meanwhile; the full method reports it.
    } catch (const Failure&) {
    }
  }
  return CallFully(self, "_begin_window", arguments, count, names);
}

PyObject* FastEnd(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  std::shared_ptr<Monitor>* monitor = FindOpenMonitor(self);
  if (monitor != nullptr && count == 1 && names == nullptr && !(*monitor)->log()) {
    try {
      const WindowEnd end = (*monitor)->Synchronize();
      auto ended = (*monitor)->energy().EndWindow(NameOrEmpty(arguments[0]), end);
      if (ended.ok())
        return py::cast(MeasurementObject(std::move(ended).value(), *monitor)).release().ptr();
    } catch (py::error_already_set& raised) {
      raised.restore();
      return nullptr;
    } catch (const Failure&) {
    }
  }
  return CallFully(self, "_end_window", arguments, count, names);
}

void BindFastWindows(const py::handle& type) {
  constexpr int kFlags = METH_FASTCALL | METH_KEYWORDS;
  static PyMethodDef methods[] = {
      {"begin_window", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&FastBegin)),
       kFlags, nullptr},
      {"end_window", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&FastEnd)), kFlags,
       nullptr}};
  AddMethods(type, methods);
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

// `log` holds a path, whether all columns are written, and whether existing content is kept.
std::shared_ptr<Monitor> OpenMonitor(std::optional<std::vector<unsigned>> gpus,
                                     std::optional<std::vector<unsigned>> cpus, bool share,
                                     const std::tuple<std::string, bool, bool>& log,
                                     const std::string& framework) {
  const auto& [file, extended, append] = log;
  return Monitor::Open(
      {.gpus = std::move(gpus),
       .cpus = std::move(cpus),
       .share = share,
       .log_file = file,
       .log_columns = extended ? WindowColumns::kExtended : WindowColumns::kReference,
       .if_log_exists = append ? IfLogExists::kContinue : IfLogExists::kBeginAnew,
       .framework = framework});
}

}  // namespace

void BindMonitor(py::module_& core) {
  py::module_ module = core.def_submodule("monitor");
  BindMeasurement(module);
  py::class_<Monitor, std::shared_ptr<Monitor>> type(module, "Monitor");
  type.def(py::init(&OpenMonitor), py::arg("gpus"), py::arg("cpus"), py::arg("share"),
           py::arg("log"), py::arg("framework"))
      .def("_begin_window", &BeginWindow, py::arg("key"), py::arg("sync_execution") = true,
           py::arg("restart") = false)
      .def("_end_window", &EndWindow, py::arg("key"), py::arg("sync_execution") = true,
           py::arg("cancel") = false)
      .def(
          "peek_window",
          [](const std::shared_ptr<Monitor>& monitor, const py::handle& key) {
            return MeasurementObject(Unwrap(monitor->energy().PeekWindow(WindowName(key))));
          },
          py::arg("key"))
      .def_property_readonly("open_windows",
                             [](const Monitor& monitor) { return monitor.energy().OpenWindows(); })
      .def("reset_windows", [](Monitor& monitor) { monitor.energy().CancelAllWindows(); })
      .def("close", &Monitor::Close)
      .def_property_readonly("closed", &Monitor::closed)
      .def_property_readonly("in_forked_child", &Monitor::InForkedChild)
      .def_property_readonly(
          "_edges_after_work",
          [](const Monitor& monitor) { return monitor.energy().edges_after_work(); })
      .def_property_readonly("device_names", &DeviceNames)
      .def_property_readonly("absent", &AbsentDevices);
  BindFastWindows(type);
}

}  // namespace zeus::python
