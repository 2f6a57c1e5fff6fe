#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/closeable.h"
#include "python/bindings/errors.h"
#include "python/bindings/gpu_knobs.h"
#include "python/bindings/monitor.h"
#include "zeus/device/gpu.h"
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

namespace {

using GpuPointer = std::shared_ptr<Gpu>;

// Calls the driver without the GIL.
template <class Question>
auto AskGpu(const GpuPointer& gpu, const Question& question) {
  auto answer = [&] {
    const WithoutGil released;
    return question(*gpu);
  }();
  return Unwrap(std::move(answer), Family::kGpu);
}

PowerKind ParsePowerKind(const std::string& kind) {
  if (kind == "instant") return PowerKind::kInstant;
  if (kind == "average") return PowerKind::kOneSecondAverage;
  return PowerKind::kMemory;
}

ClockDomain ParseDomain(const std::string& domain) {
  return domain == "memory" ? ClockDomain::kMemory : ClockDomain::kGraphics;
}

double Power(const GpuPointer& gpu, const std::string& kind) {
  return AskGpu(gpu, [&](Gpu& device) { return device.Power(ParsePowerKind(kind)); }).value();
}

std::vector<double> SupportedClocks(const GpuPointer& gpu, const std::string& domain) {
  std::vector<double> megahertz;
  for (const Hertz clock :
       AskGpu(gpu, [&](Gpu& device) { return device.SupportedClocks(ParseDomain(domain)); }))
    megahertz.push_back(clock.ToMega());
  return megahertz;
}

double CurrentClock(const GpuPointer& gpu, const std::string& domain) {
  return AskGpu(gpu, [&](Gpu& device) { return device.CurrentClock(ParseDomain(domain)); })
      .ToMega();
}

py::dict PowerLimits(const GpuPointer& gpu) {
  const PowerLimit limit = AskGpu(gpu, [](Gpu& device) { return device.CurrentPowerLimit(); });
  py::dict watts;
  watts["min"] = limit.range.min.value();
  watts["max"] = limit.range.max.value();
  watts["default"] = limit.default_limit.value();
  watts["requested"] = limit.requested.value();
  watts["enforced"] = limit.enforced.value();
  return watts;
}

std::vector<std::string> Throttling(const GpuPointer& gpu) {
  const ThrottleReasons reasons =
      AskGpu(gpu, [](Gpu& device) { return device.CurrentThrottleReasons(); });
  std::vector<std::string> names;
  if (reasons.idle) names.emplace_back("idle");
  if (reasons.power_cap) names.emplace_back("power_cap");
  if (reasons.thermal) names.emplace_back("thermal");
  if (reasons.locked_clock) names.emplace_back("locked_clock");
  if (reasons.other) names.emplace_back("other");
  return names;
}

using GpuClass = py::class_<Gpu, GpuPointer>;

void BindIdentity(GpuClass& gpu) {
  gpu.def_property_readonly("name", [](const Gpu& self) { return self.name(); })
      .def_property_readonly("uuid", [](const Gpu& self) { return self.identity().uuid; })
      .def_property_readonly("pci_address",
                             [](const Gpu& self) { return self.identity().pci_address; })
      .def_property_readonly("model", [](const Gpu& self) { return self.identity().model; })
      .def_property_readonly("driver", [](const Gpu& self) { return self.identity().driver; })
      .def_property_readonly("vendor",
                             [](const Gpu& self) { return VendorName(self.identity().vendor); });
}

void BindReadings(GpuClass& gpu) {
  gpu.def("energy",
          [](const GpuPointer& self) {
            return AskGpu(self, [](Gpu& device) { return device.TotalEnergy(); }).value();
          })
      .def("power", &Power, py::arg("kind"))
      .def("temperature",
           [](const GpuPointer& self) {
             return AskGpu(self, [](Gpu& device) { return device.Temperature(); }).value();
           })
      .def("utilization",
           [](const GpuPointer& self) {
             const Utilization share =
                 AskGpu(self, [](Gpu& device) { return device.CurrentUtilization(); });
             return py::make_tuple(share.compute, share.memory);
           })
      .def("memory_use",
           [](const GpuPointer& self) {
             const MemoryUse memory =
                 AskGpu(self, [](Gpu& device) { return device.CurrentMemoryUse(); });
             return py::make_tuple(memory.used_bytes, memory.total_bytes);
           })
      .def("throttle_reasons", &Throttling)
      .def("power_limits", &PowerLimits)
      .def("supported_clocks", &SupportedClocks, py::arg("domain"))
      .def("clock", &CurrentClock, py::arg("domain"))
      .def("persistence", [](const GpuPointer& self) {
        return AskGpu(self, [](Gpu& device) { return device.CurrentPersistence(); }) ==
               Persistence::kOn;
      });
}

void SetPersistence(const GpuPointer& gpu, bool on) {
  Check(GpuKnobs::OfThisProcess().SetPersistence(gpu, on ? Persistence::kOn : Persistence::kOff),
        Family::kGpu);
}

Ceiling ChooseCeiling(bool may_raise) { return may_raise ? Ceiling::kOfDevice : Ceiling::kAsFound; }

void LockClock(const GpuPointer& gpu, const std::string& domain, double min, double max,
               bool may_raise) {
  Check(GpuKnobs::OfThisProcess().LockClock(
            gpu, ParseDomain(domain), {.min = Hertz::FromMega(min), .max = Hertz::FromMega(max)},
            ChooseCeiling(may_raise)),
        Family::kGpu);
}

void BindKnobs(GpuClass& gpu) {
  gpu.def(
         "set_power_limit",
         [](const GpuPointer& self, double watts, bool may_raise) {
           Check(GpuKnobs::OfThisProcess().SetPowerLimit(self, Watts(watts),
                                                         ChooseCeiling(may_raise)),
                 Family::kGpu);
         },
         py::arg("watts"), py::arg("may_raise") = false)
      .def("restore_power_limit",
           [](const GpuPointer& self) {
             Check(GpuKnobs::OfThisProcess().Restore(self, KnobKind::kGpuPowerLimit), Family::kGpu);
           })
      .def_property_readonly("holds_power_limit",
                             [](const GpuPointer& self) {
                               return GpuKnobs::OfThisProcess().Holds(self,
                                                                      KnobKind::kGpuPowerLimit);
                             })
      .def("reset_power_limit",
           [](const GpuPointer& self) {
             Check(GpuKnobs::OfThisProcess().ResetPowerLimit(self), Family::kGpu);
           })
      .def("lock_clock", &LockClock, py::arg("domain"), py::arg("min"), py::arg("max"),
           py::arg("may_raise") = false)
      .def(
          "reset_clock",
          [](const GpuPointer& self, const std::string& domain) {
            Check(GpuKnobs::OfThisProcess().ResetClock(self, ParseDomain(domain)), Family::kGpu);
          },
          py::arg("domain"))
      .def("set_persistence", &SetPersistence, py::arg("on"));
}

}  // namespace

void BindGpu(py::module_& module) {
  GpuClass gpu(module, "Gpu");
  BindIdentity(gpu);
  BindReadings(gpu);
  BindKnobs(gpu);
}

}  // namespace zeus::python
