#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/errors.h"
#include "python/bindings/sim_node.h"
#include "zeus/device/sim/fault.h"

namespace zeus::python {
namespace {

std::vector<py::dict> Models() {
  std::vector<py::dict> models;
  for (const sim::GpuModel& model : sim::GpuModels()) {
    py::dict entry;
    entry["id"] = std::string(model.id);
    entry["name"] = std::string(model.name);
    entry["idle_power"] = model.idle_power.value();
    entry["min_power_limit"] = model.limit_range.min.value();
    entry["max_power_limit"] = model.limit_range.max.value();
    entry["default_power_limit"] = model.default_limit.value();
    entry["memory_bytes"] = model.memory_bytes;
    entry["peak_operations"] = model.peak_operations;
    entry["memory_bandwidth"] = model.memory_bandwidth;
    models.push_back(entry);
  }
  return models;
}

std::vector<py::dict> Workloads() {
  std::vector<py::dict> workloads;
  for (const sim::Workload& workload : sim::Workloads()) {
    py::dict entry;
    entry["name"] = std::string(workload.name);
    entry["dataset_size"] = workload.dataset_size;
    entry["default_batch_size"] = workload.default_batch_size;
    entry["batch_sizes"] =
        std::vector<unsigned>(workload.batch_sizes.begin(), workload.batch_sizes.end());
    workloads.push_back(entry);
  }
  return workloads;
}

std::shared_ptr<SimNode> Start(const std::string& name, const std::string& gpus, std::uint64_t seed,
                               double time_scale, std::optional<double> ambient) {
  sim::NodeSpec spec;
  spec.gpus = Unwrap(sim::ParseGpuList(gpus));
  spec.seed = seed;
  spec.time_scale = time_scale;
  if (ambient) spec.ambient = Celsius(*ambient);
  return SimNode::Start(name, spec);
}

std::shared_ptr<SimWork> OpenWorkload(const std::shared_ptr<SimNode>& node,
                                      const std::optional<std::vector<unsigned>>& gpus,
                                      const std::string& workload, unsigned batch_size) {
  sim::LoadSpec load;
  load.workload = Unwrap(sim::FindWorkload(workload));
  load.batch_size = batch_size == 0 ? load.workload->default_batch_size : batch_size;
  return SimWork::Open(node, gpus, load);
}

std::shared_ptr<SimWork> OpenSteps(const std::shared_ptr<SimNode>& node,
                                   const std::optional<std::vector<unsigned>>& gpus,
                                   double operations, double bytes) {
  sim::LoadSpec load;
  load.work = sim::StepWork{.operations = operations, .bytes = bytes};
  return SimWork::Open(node, gpus, load);
}

std::shared_ptr<SimWork> OpenDraw(const std::shared_ptr<SimNode>& node,
                                  const std::optional<std::vector<unsigned>>& gpus, double watts) {
  sim::LoadSpec load;
  load.demand = Watts(watts);
  return SimWork::Open(node, gpus, load);
}

std::vector<py::tuple> Truth(const SimNode& simulated) {
  const sim::SharedNode& node = simulated.node();
  const Seconds now = node.Now();
  std::vector<py::tuple> gpus;
  for (unsigned i = 0; i < node.gpu_count(); ++i) {
    const auto view = Unwrap(node.Read(i, now));
    gpus.push_back(py::make_tuple(i, std::string(view.core.model().id), view.core.uuid(),
                                  view.core.exact_energy().value(),
                                  view.core.exact_power().value()));
  }
  return gpus;
}

void InjectFault(const SimNode& simulated, unsigned gpu, const std::string& kind,
                 std::optional<double> at, std::optional<double> probability) {
  sim::Fault fault = Unwrap(sim::ParseFault(kind));
  if (at) fault.at = Seconds(*at);
  if (probability) fault.probability = *probability;
  Check(simulated.node().Update(gpu, [&](sim::GpuCore& core) { return core.InjectFault(fault); }));
}

void ClearFaults(const SimNode& simulated, unsigned gpu) {
  Check(simulated.node().Update(gpu, [](sim::GpuCore& core) {
    core.ClearFaults();
    return Ok();
  }));
}

}  // namespace

void BindSim(py::module_& core) {
  py::module_ module = core.def_submodule("sim");
  module.def("models", &Models);
  module.def("workloads", &Workloads);
  py::class_<SimNode, std::shared_ptr<SimNode>>(module, "Node")
      .def_static("start", &Start, py::arg("name"), py::arg("gpus"), py::arg("seed"),
                  py::arg("time_scale"), py::arg("ambient"))
      .def_static("attach", &SimNode::Attach, py::arg("name"))
      .def("stop", &SimNode::Stop)
      .def_property_readonly("closed", &SimNode::closed)
      .def_property_readonly("name", [](const SimNode& node) { return node.node().name(); })
      .def_property_readonly("seed", [](const SimNode& node) { return node.node().seed(); })
      .def_property_readonly("time_scale",
                             [](const SimNode& node) { return node.node().time_scale(); })
      .def_property_readonly("now", [](const SimNode& node) { return node.node().Now().count(); })
      .def("truth", &Truth)
      .def("fault", &InjectFault, py::arg("gpu"), py::arg("kind"), py::arg("at"),
           py::arg("probability"))
      .def("clear_faults", &ClearFaults, py::arg("gpu"));
  py::class_<SimWork, std::shared_ptr<SimWork>>(module, "Work")
      .def_static("of_workload", &OpenWorkload, py::arg("node"), py::arg("gpus"),
                  py::arg("workload"), py::arg("batch_size"))
      .def_static("of_steps", &OpenSteps, py::arg("node"), py::arg("gpus"), py::arg("operations"),
                  py::arg("bytes"))
      .def_static("of_watts", &OpenDraw, py::arg("node"), py::arg("gpus"), py::arg("watts"))
      .def_property_readonly("gpus", &SimWork::gpus)
      .def("launch", &SimWork::Launch, py::arg("steps"))
      .def("step", &SimWork::Step, py::arg("steps"), py::arg("compute"))
      .def("close", &SimWork::Close)
      .def_property_readonly("closed", &SimWork::closed);
}

}  // namespace zeus::python
