#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>

#include "python/bindings/bind.h"
#include "python/bindings/training.h"

namespace zeus::python {
namespace {

// The Python layer has looked at all of them: zeus.data_loader.
std::shared_ptr<Training> MakeTraining(const std::shared_ptr<Monitor>& monitor,
                                       const py::list& callbacks, const py::object& collective,
                                       const py::dict& options) {
  const auto bound = options["cost_bound"].cast<std::optional<double>>();
  const auto power = options["max_power"].cast<std::optional<double>>();
  TrainingOptions training{.max_epochs = options["max_epochs"].cast<int>(),
                           .target_metric = options["target_metric"].cast<std::optional<double>>(),
                           .higher_is_better = options["higher_is_better"].cast<bool>(),
                           .eta = options["eta"].cast<double>(),
                           .window = options["window"].cast<std::string>()};
  if (bound) training.cost_bound = Joules(*bound);
  if (power) training.max_power = Watts(*power);
  return std::make_shared<Training>(monitor, std::move(training), callbacks, collective);
}

// (steps, time, energy, energy sigma, cost, cost sigma)
py::tuple AmountsOf(const TrainingAmounts& amounts) {
  const bool known = amounts.cost.has_value();
  return py::make_tuple(amounts.steps, amounts.time.count(), amounts.energy.value(),
                        amounts.energy_sigma.value(),
                        known ? std::optional(amounts.cost->value()) : std::nullopt,
                        known ? std::optional(amounts.cost_sigma.value()) : std::nullopt);
}

py::dict SummaryOf(Training& training, double patience) {
  const TrainingSummary summary = training.Summary(patience);
  py::list records;
  for (const EpochRecord& record : summary.records)
    records.append(py::make_tuple(record.epoch, AmountsOf(record.amounts), record.metric));
  py::dict result;
  result["epochs"] = summary.epochs;
  result["amounts"] = AmountsOf(summary.amounts);
  result["best_metric"] = summary.best_metric;
  result["reason"] = summary.reason ? py::object(py::str(StopReasonName(*summary.reason)))
                                    : py::object(py::none());
  result["records"] = std::move(records);
  result["missing"] = summary.missing;
  return result;
}

}  // namespace

void BindTraining(py::module_& core) {
  py::module_ module = core.def_submodule("training");
  py::class_<Training, std::shared_ptr<Training>>(module, "Training")
      .def(py::init(&MakeTraining), py::arg("monitor"), py::arg("callbacks"), py::arg("collective"),
           py::arg("options"))
      .def("begin_training", &Training::BeginTraining)
      .def("next_epoch", &Training::NextEpoch)
      .def("leave_training", &Training::LeaveTraining, py::arg("by_exception"))
      .def("begin_batches", [](const Training& training) { training.loop().BeginBatches(); })
      .def("end_batches", [](const Training& training) { training.loop().EndBatches(); })
      .def("may_step", [](const Training& training) { return training.loop().MayStep(); })
      .def("begin_step", [](const Training& training) { training.loop().BeginStep(); })
      .def("end_step", [](const Training& training) { training.loop().EndStep(); })
      .def("report_metric",
           [](const Training& training, double metric) { training.loop().ReportMetric(metric); })
      .def("stop", [](const Training& training) { training.loop().Stop(); })
      .def("summary", &SummaryOf, py::arg("patience"))
      .def_property_readonly("epoch",
                             [](const Training& training) { return training.loop().epoch(); })
      .def("close", &Training::Close)
      .def_property_readonly("closed", &Training::closed);
}

}  // namespace zeus::python
