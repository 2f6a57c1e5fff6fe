#include "python/bindings/measurement.h"

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "python/bindings/closeable.h"
#include "python/bindings/errors.h"
#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/monitor/measurement_json.h"

namespace zeus::python {
namespace {

namespace py = pybind11;

// pybind11 calls this only for an object without a value.
void* NoValue(std::size_t) {
  throw py::type_error("__init__() of the base class was not called for this object");
}

// Pickle protocols below 2 create an instance of pybind11's base class, which crashes the program.
py::object Reduce(const py::object& object, int protocol) {
  if (protocol < 2) throw py::type_error("pickle this object with protocol 2 or later");
  return py::module_::import("builtins").attr("object").attr("__reduce_ex__")(object, protocol);
}

bool IsOurs(const py::detail::type_info& type) {
  const py::object module = py::handle(reinterpret_cast<PyObject*>(type.type)).attr("__module__");
  return module.cast<std::string_view>().starts_with("zeus.");
}

}  // namespace

void RefuseBareObjects() {
  for (const auto& [_, type] : py::detail::get_internals().registered_types_cpp) {
    if (!IsOurs(*type)) continue;
    if (type->operator_new == nullptr) type->operator_new = &NoValue;
    const py::handle python(reinterpret_cast<PyObject*>(type->type));
    python.attr("__reduce_ex__") =
        py::cpp_function(&Reduce, py::name("__reduce_ex__"), py::is_method(python));
  }
}

namespace {

constexpr double kUnknownEnergy = std::numeric_limits<double>::quiet_NaN();

// "gpu:3" is the GPU with index 3.
std::string_view DeviceKind(std::string_view device) { return device.substr(0, device.find(':')); }

// Returns the index of the device, or the name of a rail.
py::object DeviceKey(std::string_view device) {
  const std::string_view text = device.substr(device.find(':') + 1);
  int index = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (failure == std::errc() && end == text.data() + text.size()) return py::int_(index);
  return py::str(text.data(), text.size());
}

double EnergyOrNan(const DeviceMeasurement& device) {
  return device.energy.ok() ? device.energy.value().energy.value() : kUnknownEnergy;
}

// Returns a value of an estimate, or None if there is no measurement.
template <class Get>
py::object IfKnown(const DeviceMeasurement& device, Get get) {
  if (!device.energy.ok()) return py::none();
  return py::cast(get(device.energy.value()));
}

py::object Reason(const DeviceMeasurement& device) {
  return device.energy.ok() ? py::object(py::none()) : py::str(device.energy.error().message);
}

void AddNumbers(std::vector<DeviceMeasurement>& devices, const char* kind,
                const py::object& given) {
  if (given.is_none()) return;
  if (!py::isinstance<py::dict>(given))
    throw py::type_error(
        fmt::format("the energies of a measurement are a dictionary of joules, not {}",
                    py::repr(given).cast<std::string>()));
  for (const auto& [index, joules] : given.cast<py::dict>()) {
    const Joules energy(joules.cast<double>());
    devices.push_back({.device = fmt::format("{}:{}", kind, py::str(index).cast<std::string>()),
                       .energy = EnergyEstimate{.energy = energy,
                                                .sigma = Joules(kUnknownEnergy),
                                                .shared_sigma = Joules(kUnknownEnergy),
                                                .attributed = energy,
                                                .source = EnergySource::kCounter,
                                                .coverage = kUnknownEnergy,
                                                .updates = 0,
                                                .update_period = Seconds(kUnknownEnergy),
                                                .flags = {}}});
  }
}

double UnixSeconds(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

// The sum, and not a number where something is missing: what is not known must not look small.
double TotalOrNan(const Measurement& measurement) {
  const Measurement::Total total = measurement.Sum();
  return total.missing.empty() && !total.contains.empty() ? total.energy.value() : kUnknownEnergy;
}

double TotalSigmaOrNan(const Measurement& measurement) {
  return std::isnan(TotalOrNan(measurement)) ? kUnknownEnergy : measurement.Sum().sigma.value();
}

// Converts objects, arrays, texts, numbers, booleans and null.
py::object ToPython(const Json& json) {
  if (json.is_object()) {
    py::dict dict;
    for (const auto& [key, value] : json.items()) dict[py::str(key)] = ToPython(value);
    return dict;
  }
  if (json.is_array()) {
    py::list list;
    for (const Json& value : json) list.append(ToPython(value));
    return list;
  }
  if (json.is_string()) return py::str(json.get<std::string>());
  if (json.is_boolean()) return py::bool_(json.get<bool>());
  if (json.is_number_float()) return py::float_(json.get<double>());
  if (json.is_number()) return py::int_(json.get<long long>());
  return py::none();
}

// Returns the value with None for numbers that JSON has no text for: unknown ones are NaN in
// pickles of older versions, and null in JSON.
py::object FiniteOrNone(const py::handle& value) {
  if (py::isinstance<py::float_>(value) && !std::isfinite(value.cast<double>())) return py::none();
  if (py::isinstance<py::dict>(value)) {
    py::dict copy;
    for (const auto& [key, item] : value.cast<py::dict>()) copy[key] = FiniteOrNone(item);
    return copy;
  }
  if (py::isinstance<py::list>(value)) {
    py::list copy;
    for (const auto& item : value) copy.append(FiniteOrNone(item));
    return copy;
  }
  return py::reinterpret_borrow<py::object>(value);
}

}  // namespace

py::object MeasurementObject::EnergyByKind(const char* kind) const {
  py::dict energies;
  for (const DeviceMeasurement& device : measurement_.devices) {
    if (DeviceKind(device.device) != kind) continue;
    energies[DeviceKey(device.device)] = py::float_(EnergyOrNan(device));
  }
  if (energies.empty() && std::string_view(kind) != "gpu") return py::none();
  return energies;
}

MeasurementObject MeasurementObject::Refined(double timeout) {
  if (measurement_.stage == Measurement::Stage::kRefined) return *this;
  if (refined_) return MeasurementObject(*refined_, monitor_);
  const std::shared_ptr<Monitor> monitor = monitor_.lock();
  if (!monitor)
    throw Failure(
        {ErrorCode::kNotFound, "the monitor of this window is gone: ask while it is there"});
  const std::shared_ptr<NodeMonitor> recording = monitor->recording();
  const WindowId id = measurement_.id;
  std::optional<Result<Measurement>> last;
  WaitUntil(
      [&] {
        last.emplace(recording->monitor().RefinedResult(id));
        return last->ok() || !last->error().retryable();
      },
      timeout);
  // Another thread may have got it meanwhile.
  if (!refined_) refined_ = std::make_shared<const Measurement>(Unwrap(*std::move(last)));
  return MeasurementObject(*refined_, monitor_);
}

std::string MeasurementObject::ToText() const {
  const Measurement::Total total = measurement_.Sum();
  std::string text = total.contains.empty()
                         ? "no energy"
                         : WithSigma(total.energy, total.sigma) +
                               fmt::format(" over {:.4g} s ({})", measurement_.time.count(),
                                           fmt::join(total.contains, ", "));
  for (const DeviceMeasurement& device : measurement_.devices)
    if (!device.energy.ok())
      text += fmt::format("; {}: {}", device.device, device.energy.error().message);
  return text;
}

std::string MeasurementObject::ToJson() const { return JsonText(AsJson()); }

Json MeasurementObject::AsJson() const { return zeus::ToJson(measurement_); }

py::dict MeasurementObject::ToDict() const { return ToPython(AsJson()); }

MeasurementObject MeasurementObject::FromDict(const py::dict& state) {
  const auto text =
      py::module_::import("json").attr("dumps")(FiniteOrNone(state)).cast<std::string>();
  return MeasurementObject(Unwrap(MeasurementFromJson(Unwrap(ParseJson(text)))));
}

MeasurementObject MeasurementObject::FromNumbers(double time, const Numbers& numbers,
                                                 std::string window) {
  if (!(time >= 0))
    throw Failure({ErrorCode::kInvalidArgument,
                   fmt::format("the time of a measurement is 0 or more seconds, not {}", time)});
  Measurement measurement;
  measurement.window = std::move(window);
  measurement.time = Seconds(time);
  measurement.stage = Measurement::Stage::kRefined;  // Plain numbers cannot become more precise.
  AddNumbers(measurement.devices, "gpu", numbers.gpu);
  AddNumbers(measurement.devices, "cpu", numbers.cpu);
  AddNumbers(measurement.devices, "dram", numbers.dram);
  AddNumbers(measurement.devices, "rail", numbers.soc);
  return MeasurementObject(std::move(measurement));
}

namespace {

void BindDeviceMeasurement(py::module_& module) {
  py::class_<DeviceMeasurement>(module, "DeviceEnergy")
      .def_readonly("device", &DeviceMeasurement::device)
      .def_readonly("in_total", &DeviceMeasurement::in_total)
      .def_property_readonly("energy", &EnergyOrNan)
      .def_property_readonly("reason", &Reason)
      .def_property_readonly("sigma",
                             [](const DeviceMeasurement& device) {
                               return device.energy.ok() ? device.energy.value().sigma.value()
                                                         : kUnknownEnergy;
                             })
      .def_property_readonly("attributed",
                             [](const DeviceMeasurement& device) {
                               return device.energy.ok() ? device.energy.value().attributed.value()
                                                         : kUnknownEnergy;
                             })
      .def_property_readonly("source",
                             [](const DeviceMeasurement& device) {
                               return IfKnown(device, [](const EnergyEstimate& estimate) {
                                 return EnergySourceName(estimate.source);
                               });
                             })
      .def_property_readonly("coverage",
                             [](const DeviceMeasurement& device) {
                               return IfKnown(device, [](const EnergyEstimate& estimate) {
                                 return estimate.coverage;
                               });
                             })
      .def_property_readonly(
          "updates",
          [](const DeviceMeasurement& device) {
            return IfKnown(device, [](const EnergyEstimate& estimate) { return estimate.updates; });
          })
      .def_property_readonly("update_period",
                             [](const DeviceMeasurement& device) {
                               return IfKnown(device, [](const EnergyEstimate& estimate) {
                                 return estimate.update_period.count();
                               });
                             })
      .def_property_readonly("flags",
                             [](const DeviceMeasurement& device) {
                               return device.energy.ok() ? device.energy.value().flags.Names()
                                                         : std::vector<std::string_view>();
                             })
      .def("__str__", [](const DeviceMeasurement& device) {
        if (device.energy.ok() && std::isnan(device.energy.value().sigma.value()))
          return EnergyText(device.energy.value().energy);
        return ToText(device);
      });
}

py::dict DevicesDict(const MeasurementObject& measurement) {
  py::dict devices;
  for (const DeviceMeasurement& device : measurement.get().devices)
    devices[py::str(device.device)] = py::cast(device);
  return devices;
}

void BindMethods(py::class_<MeasurementObject>& type) {
  using Object = MeasurementObject;
  type.def(
          "refined",
          [](Object& m, const py::object& timeout) {
            if (!PyFloat_Check(timeout.ptr()) && !PyIndex_Check(timeout.ptr()))
              throw py::type_error("a timeout is a number of seconds, not " +
                                   py::repr(timeout).cast<std::string>());
            return m.Refined(timeout.cast<double>());
          },
          py::arg("timeout") = 2.0)
      .def("__copy__", [](const Object& m) { return m; })
      .def("__deepcopy__", [](const Object& m, const py::dict&) { return m; })
      .def("to_dict", &Object::ToDict)
      .def("to_json", &Object::ToJson)
      .def("to_pandas",
           [](const Object& m) {
             return py::module_::import("zeus._pandas").attr("measurement_frame")(m.ToDict());
           })
      .def("__str__", &Object::ToText)
      .def("__repr__",
           [](const Object& m) {
             return fmt::format("<Measurement {}: {}>",
                                py::repr(py::str(m.get().window)).cast<std::string>(), m.ToText());
           })
      .def("__eq__",
           [](const Object& m, const py::object& other) -> bool {
             return py::isinstance<Object>(other) &&
                    m.ToJson() == other.cast<const Object&>().ToJson();
           })
      .def(py::pickle([](const Object& m) { return m.ToDict(); },
                      [](const py::dict& state) { return Object::FromDict(state); }));
}

}  // namespace

void BindMeasurement(py::module_& module) {
  BindDeviceMeasurement(module);
  using Object = MeasurementObject;
  py::class_<Object> type(module, "Measurement");
  type.def(py::init([](double time, py::object gpu, py::object cpu, py::object dram, py::object soc,
                       std::string window) {
             return Object::FromNumbers(
                 time, {std::move(gpu), std::move(cpu), std::move(dram), std::move(soc)},
                 std::move(window));
           }),
           py::arg("time"), py::arg("gpu_energy"), py::arg("cpu_energy") = py::none(),
           py::arg("dram_energy") = py::none(), py::arg("soc_energy") = py::none(),
           py::arg("window") = "")
      .def_property_readonly("window", [](const Object& m) { return m.get().window; })
      .def_property_readonly("start_time",
                             [](const Object& m) { return UnixSeconds(m.get().started); })
      .def_property_readonly("time", [](const Object& m) { return m.get().time.count(); })
      .def_property_readonly(
          "is_refined",
          [](const Object& m) { return m.get().stage == Measurement::Stage::kRefined; })
      .def_property_readonly("gpu_energy", [](const Object& m) { return m.EnergyByKind("gpu"); })
      .def_property_readonly("cpu_energy", [](const Object& m) { return m.EnergyByKind("cpu"); })
      .def_property_readonly("dram_energy", [](const Object& m) { return m.EnergyByKind("dram"); })
      .def_property_readonly("soc_energy", [](const Object& m) { return m.EnergyByKind("rail"); })
      .def_property_readonly("total_energy", [](const Object& m) { return TotalOrNan(m.get()); })
      .def_property_readonly("total_sigma",
                             [](const Object& m) { return TotalSigmaOrNan(m.get()); })
      .def_property_readonly("devices", &DevicesDict);
  BindMethods(type);
}

}  // namespace zeus::python
