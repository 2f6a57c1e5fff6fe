#include <pybind11/pybind11.h>

#include "python/bindings/bare_objects.h"
#include "python/bindings/bind.h"
#include "python/bindings/closeable.h"
#include "zeus/base/version.h"

PYBIND11_MODULE(_core, core) {
  using namespace zeus::python;
  core.doc() = "The Zeus library. Use the packages above it: zeus.monitor, zeus.optimizer, ...";
  core.attr("version") = zeus::Version();
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
  RefuseBareObjects();
  // Before the interpreter takes itself apart: recorder threads end, knobs are put back.
  py::module_::import("atexit").attr("register")(py::cpp_function(&Closeable::CloseAll));
}
