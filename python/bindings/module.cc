#include <pybind11/pybind11.h>

#include "python/bindings/bind.h"
#include "python/bindings/closeable.h"
#include "python/bindings/documentation.h"
#include "python/bindings/measurement.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/version.h"

PYBIND11_MODULE(_core, core) {
  using namespace zeus::python;
  core.doc() = "The Zeus library. Use the packages above it: zeus.monitor, zeus.optimizer, ...";
  core.attr("version") = zeus::Version();
  core.def(
      "with_sigma",
      [](double value, double sigma, const std::string& unit) {
        return zeus::WithSigma(value, sigma, unit);
      },
      py::arg("value"), py::arg("sigma"), py::arg("unit"));
  core.def(
      "percent_with_sigma",
      [](double percent, double sigma) { return zeus::PercentWithSigma(percent, sigma); },
      py::arg("percent"), py::arg("sigma"));
  BindErrors(core);
  BindMonitor(core);
  BindDevice(core);
  BindRecording(core);
  BindSim(core);
  BindPowerLimit(core);
  BindTraining(core);
  BindBatchSize(core);
  BindTrain(core);
  BindPipeline(core);
  BindMetrics(core);
  BindCarbon(core);
  Document(core);
  RefuseBareObjects();
  // Recorder threads must end and knobs be restored before the interpreter is finalised.
  py::module_::import("atexit").attr("register")(py::cpp_function(&Closeable::CloseAll));
}
