#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/recording.h"

namespace zeus::python {
namespace {

// Of its own: no windows, and nothing to share with other processes.
std::unique_ptr<Recording> Record(std::optional<std::vector<unsigned>> gpus,
                                  double telemetry_interval, bool rails) {
  const std::vector<unsigned> none;
  return std::make_unique<Recording>(
      Monitor::Open({.gpus = rails ? none : std::move(gpus),
                     .cpus = none,
                     .share = false,
                     .telemetry_interval = Seconds(telemetry_interval)}));
}

py::list History(Recording& recording, std::size_t device, Recording::Quantity quantity,
                 std::optional<double> begin, std::optional<double> end) {
  py::list spans;
  for (const Recording::Span& span : recording.History(device, quantity, begin, end))
    spans.append(py::make_tuple(span.begin, span.end, span.value));
  return spans;
}

py::tuple ToTuple(const Recording::Energy& energy) {
  return py::make_tuple(energy.joules, energy.sigma);
}

}  // namespace

void BindRecording(py::module_& core) {
  py::module_ module = core.def_submodule("recording");
  py::enum_<Recording::Quantity>(module, "Quantity")
      .value("POWER", Recording::Quantity::kPower)
      .value("AVERAGE_POWER", Recording::Quantity::kAveragePower)
      .value("MEMORY_POWER", Recording::Quantity::kMemoryPower)
      .value("TEMPERATURE", Recording::Quantity::kTemperature)
      .value("GRAPHICS_CLOCK", Recording::Quantity::kGraphicsClock)
      .value("POWER_LIMIT", Recording::Quantity::kPowerLimit)
      .value("UTILIZATION", Recording::Quantity::kUtilization);
  py::class_<Recording>(module, "Recording")
      .def(py::init<std::shared_ptr<Monitor>>(), py::arg("monitor"))
      .def_static("start", &Record, py::arg("gpus"), py::arg("telemetry_interval"),
                  py::arg("rails") = false)
      .def_property_readonly("device_names", &Recording::DeviceNames)
      .def_property_readonly("time_scale", &Recording::time_scale)
      .def("present", &Recording::Present, py::arg("device"), py::arg("quantity"))
      .def("history", &History, py::arg("device"), py::arg("quantity"),
           py::arg("begin") = py::none(), py::arg("end") = py::none())
      .def("since", &Recording::Since, py::arg("device"), py::arg("quantity"))
      .def(
          "energy",
          [](Recording& self, std::size_t device, double begin, double end) {
            return ToTuple(self.EnergyBetween(device, begin, end));
          },
          py::arg("device"), py::arg("begin"), py::arg("end"))
      .def(
          "total_energy",
          [](const Recording& self, std::size_t device) {
            return ToTuple(self.TotalEnergy(device));
          },
          py::arg("device"))
      .def("stop", &Recording::Stop);
}

}  // namespace zeus::python
