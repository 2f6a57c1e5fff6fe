#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/errors.h"
#include "python/bindings/gpu_knobs.h"
#include "python/bindings/machine.h"
#include "python/bindings/without_gil.h"
#include "zeus/device/privilege.h"

namespace zeus::python {
namespace {

std::vector<py::tuple> Absent(const Machine& machine) {
  std::vector<py::tuple> absent;
  for (const Absence& absence : machine.node().absent)
    absent.push_back(py::make_tuple(absence.what, absence.reason, absence.fix));
  return absent;
}

template <class T>
Result<T> Ask(const std::shared_ptr<EnergyMeter>& meter, Result<T> (EnergyMeter::*question)()) {
  const WithoutGil released;
  return ((*meter).*question)();
}

double TotalEnergy(const std::shared_ptr<EnergyMeter>& meter, Family family) {
  return Unwrap(Ask(meter, &EnergyMeter::TotalEnergy), family).value();
}

// Returns None if the socket has no counter for its memory.
std::optional<double> DramEnergy(const std::shared_ptr<CpuPackage>& cpu) {
  EnergyMeter* const dram = cpu->dram();
  if (dram == nullptr) return std::nullopt;
  return TotalEnergy({cpu, dram}, Family::kCpu);
}

void BindCpu(py::module_& module) {
  py::class_<CpuPackage, std::shared_ptr<CpuPackage>>(module, "Cpu")
      .def_property_readonly("name", [](const CpuPackage& cpu) { return cpu.name(); })
      .def_property_readonly("model", [](const CpuPackage& cpu) { return cpu.identity().model; })
      .def_property_readonly("source", [](const CpuPackage& cpu) { return cpu.identity().source; })
      .def_property_readonly("package",
                             [](const CpuPackage& cpu) { return cpu.identity().package; })
      .def_property_readonly("has_dram", [](CpuPackage& cpu) { return cpu.dram() != nullptr; })
      .def("energy",
           [](const std::shared_ptr<CpuPackage>& cpu) { return TotalEnergy(cpu, Family::kCpu); })
      .def("dram_energy", &DramEnergy);
}

void BindRail(py::module_& module) {
  py::class_<PowerRail, std::shared_ptr<PowerRail>>(module, "Rail")
      .def_property_readonly("name", [](const PowerRail& rail) { return rail.name(); })
      .def_property_readonly(
          "is_total", [](const PowerRail& rail) { return rail.role() == PowerRail::Role::kTotal; })
      .def("power", [](const std::shared_ptr<PowerRail>& rail) {
        return Unwrap(Ask<Watts>(rail, &EnergyMeter::Power)).value();
      });
}

}  // namespace

void BindDevice(py::module_& core) {
  py::module_ module = core.def_submodule("device");
  BindGpu(module);
  BindCpu(module);
  BindRail(module);
  py::class_<Machine, std::shared_ptr<Machine>>(module, "Devices")
      .def(py::init(&Machine::Open), py::kw_only(), py::arg("sysfs") = "/sys",
           py::arg("procfs") = "/proc", py::arg("dev") = "/dev")
      .def_property_readonly("gpus", &Machine::gpus)
      .def_property_readonly("lost_gpus", [](const Machine& self) { return self.node().lost_gpus; })
      .def_property_readonly("cpus", &Machine::cpus)
      .def_property_readonly("rails", &Machine::rails)
      .def_property_readonly("absent", &Absent);
  module.def("is_root", [] { return CurrentPrivilege() == Privilege::kRoot; });
}

}  // namespace zeus::python
