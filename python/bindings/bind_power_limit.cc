#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/errors.h"
#include "python/bindings/fast_calls.h"
#include "python/bindings/power_limit.h"
#include "zeus/optimizer/power_limit/profile.h"
#include "zeus/training/profile_folder.h"

namespace zeus::python {
namespace {

// A built-in objective is (objective, parameter), a user's (name, function).
using SelectorSpec = std::pair<std::string, std::variant<double, py::function>>;

Selector SelectorFrom(const SelectorSpec& spec) {
  if (const auto* parameter = std::get_if<double>(&spec.second))
    return MakeSelector(spec.first, *parameter);
  return MakeSelector(spec.first, std::get<py::function>(spec.second));
}

// Some monitors give no uncertainties: the selector gets their numbers as exact ones.
Selector Trusting(Selector selector) {
  return {.name = selector.name,
          .select = [select = std::move(selector.select)](const Profile& profile) {
            Profile exact = profile;
            for (ProfilePoint& point : exact.points) {
              point.time_sigma = Seconds(0);
              point.energy_sigma = Joules(0);
            }
            return select(exact);
          }};
}

SliceRule ReadSliceRule(const py::dict& options) {
  const auto wait = options["wait_steps"].cast<std::int64_t>();
  const auto seconds = options["seconds_per_limit"].cast<std::optional<double>>();
  if (seconds) return {.wait_steps = wait, .profile = {.time = Seconds(*seconds)}};
  return SliceRule::BySteps(wait, options["warmup_steps"].cast<std::int64_t>(),
                            options["profile_steps"].cast<std::int64_t>());
}

// zeus.optimizer.power_limit has checked all arguments.
std::shared_ptr<JitOptimizer> MakeOptimizer(const std::shared_ptr<Monitor>& monitor,
                                            const SelectorSpec& selector, const py::object& meter,
                                            const py::object& collective, const py::dict& options) {
  JitOptions jit{
      .mode = options["observe"].cast<bool>() ? OptimizerMode::kObserve : OptimizerMode::kOptimize,
      .rule = ReadSliceRule(options),
      .profile_folder = options["profile_folder"].cast<std::string>(),
      .profile_file = options["profile_path"].cast<std::string>(),
      .job = options["job"].cast<std::string>(),
      .batch_size = options["batch_size"].cast<unsigned>()};
  jit.ceiling = options["may_raise"].cast<bool>() ? Ceiling::kOfDevice : Ceiling::kAsFound;
  jit.knobs.clear();
  for (const auto& knob : options["knobs"].cast<std::vector<std::string>>())
    jit.knobs.push_back(Unwrap(ParseKnobKind(knob)));
  if (const auto stride = options["stride"].cast<std::optional<double>>())
    jit.stride = SettingOf(jit.knobs.front(), *stride);
  for (const double setting : options["settings"].cast<std::vector<double>>())
    jit.settings.push_back(SettingOf(jit.knobs.front(), setting));
  Selector chosen = SelectorFrom(selector);
  if (!meter.is_none()) chosen = Trusting(std::move(chosen));
  return std::make_shared<JitOptimizer>(JitOptimizer::Options{.monitor = monitor,
                                                              .selector = std::move(chosen),
                                                              .jit = std::move(jit),
                                                              .collective = collective,
                                                              .meter = meter});
}

// Returns (name, setting, steps, seconds).
py::tuple DescribeState(const JitOptimizer& jit) {
  const PowerLimitOptimizer& current = jit.get().current();
  const auto& state = current.state();
  const auto trying = current.trying();
  const py::object setting = trying ? py::object(py::float_(ToNumber(*trying))) : py::none();
  if (const auto* ready = std::get_if<PowerLimitOptimizer::Ready>(&state))
    return py::make_tuple("ready", setting, ready->steps_left, 0.0);
  if (const auto* warmup = std::get_if<PowerLimitOptimizer::Warmup>(&state))
    return py::make_tuple("warmup", setting, warmup->steps, warmup->time.count());
  if (const auto* profiling = std::get_if<PowerLimitOptimizer::Profiling>(&state))
    return py::make_tuple("profiling", setting, profiling->steps, profiling->time.count());
  if (const auto* confirming = std::get_if<PowerLimitOptimizer::Confirming>(&state))
    return py::make_tuple("confirming", setting, 0, confirming->time.count());
  return py::make_tuple("done", setting, 0, 0.0);
}

py::object DescribeTrouble(const JitOptimizer& jit) {
  const auto trouble = jit.get().trouble();
  if (!trouble) return py::none();
  return MakeException(*trouble);
}

py::tuple UseTuple(const JobUse& use) {
  return py::make_tuple(use.energy.value(), use.energy_sigma.value(), use.time.count(),
                        use.time_sigma.count());
}

py::dict LimitSavingsDict(JitOptimizer& jit, std::size_t knob) {
  const SavingsReport report = jit.Savings(knob);
  py::dict savings;
  savings["text"] = ToText(report);
  savings["knob"] = KnobKindName(report.knob);
  savings["steps"] = report.steps;
  savings["original"] = ToNumber(report.original);
  savings["best"] = ToNumber(report.best);
  savings["used"] = UseTuple(report.used);
  savings["at_original"] = UseTuple(report.at_original);
  savings["at_best"] = UseTuple(report.at_best);
  savings["change"] = UseTuple(report.change);
  return savings;
}

std::vector<double> ChosenBy(const JitOptimizer& jit) {
  std::vector<double> numbers;
  for (const Setting& setting : jit.get().chosen()) numbers.push_back(ToNumber(setting));
  return numbers;
}

Profile ProfileFrom(const py::list& points, double max_power) {
  Profile profile{.max_power = Watts(max_power), .complete = true};
  for (const auto& item : points) {
    const auto numbers = item.cast<py::tuple>();
    profile.points.push_back({.setting = Watts(numbers[0].cast<double>()),
                              .steps = numbers[5].cast<std::int64_t>(),
                              .time_per_step = Seconds(numbers[2].cast<double>()),
                              .time_sigma = Seconds(numbers[4].cast<double>()),
                              .energy_per_step = Joules(numbers[1].cast<double>()),
                              .energy_sigma = Joules(numbers[3].cast<double>())});
  }
  return profile;
}

// Called in every step, so it avoids pybind11's dispatcher.
PyObject* OnStepBegin(PyObject* self, PyObject*) {
  const auto* jit = HeldBy<JitOptimizer>(self);
  if (jit != nullptr && (*jit)->CountStep()) Py_RETURN_NONE;
  return PyObject_CallMethod(self, "_on_step_begin", nullptr);
}

PyObject* DoNothing(PyObject*, PyObject*) { Py_RETURN_NONE; }

void BindFastSteps(const py::handle& type) {
  static PyMethodDef methods[] = {{"on_step_begin", &OnStepBegin, METH_NOARGS, nullptr},
                                  {"on_step_end", &DoNothing, METH_NOARGS, nullptr},
                                  {"on_epoch_begin", &DoNothing, METH_NOARGS, nullptr}};
  AddMethods(type, methods);
}

}  // namespace

void BindPowerLimit(py::module_& core) {
  py::module_ module = core.def_submodule("power_limit");
  py::class_<JitOptimizer, std::shared_ptr<JitOptimizer>> type(module, "JitOptimizer");
  type.def(py::init(&MakeOptimizer), py::arg("monitor"), py::arg("selector"), py::arg("meter"),
           py::arg("collective"), py::arg("options"))
      .def("on_train_begin", &JitOptimizer::OnTrainBegin)
      .def("_on_step_begin", &JitOptimizer::OnStepBegin)
      .def("on_epoch_end", &JitOptimizer::OnEpochEnd)
      .def("on_train_end", &JitOptimizer::OnTrainEnd)
      .def("close",
           [](JitOptimizer& jit) {
             // get() throws if another thread uses it.
             if (!jit.closed() && !jit.InForkedChild()) (void)jit.get();
             jit.Close();
           })
      .def_property_readonly("closed", &JitOptimizer::closed)
      .def_property_readonly("done", &JitOptimizer::done)
      .def_property_readonly("trouble", &DescribeTrouble)
      .def("_state", &DescribeState)
      .def("_chosen", &ChosenBy)
      .def("_points", [](const JitOptimizer& jit,
                         std::size_t knob) { return ListPoints(jit.KnobProfile(knob)); })
      .def("_used", [](JitOptimizer& jit) { return UseTuple(jit.Used()); })
      .def("_savings", &LimitSavingsDict)
      .def("_save_profile", [](const JitOptimizer& jit, std::size_t knob, const std::string& file) {
        Check(WriteProfileFile(file, jit.KnobProfile(knob)));
      });
  BindFastSteps(type);
  module.def("select", [](const SelectorSpec& selector, const py::list& points, double max_power) {
    return Unwrap(SelectorFrom(selector).select(ProfileFrom(points, max_power)));
  });
  module.def("read_profile",
             [](const std::string& file) { return ListPoints(Unwrap(ReadProfileFile(file))); });
}

}  // namespace zeus::python
