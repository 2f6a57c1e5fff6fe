#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/closeable.h"
#include "python/bindings/errors.h"
#include "zeus/device/node.h"
#include "zeus/device/nvml/nvml_discovery.h"
#include "zeus/device/sim/fault.h"
#include "zeus/device/sim/node_directory.h"
#include "zeus/device/sim/node_work.h"

namespace zeus::python {

// The object behind Python's simulated node: one that this process started, which ends with it, or
// one that the environment names. Used with the GIL held.
class SimNode final : public Closeable {
 public:
  // Both throw Failure. Nodes lie in the folder ZEUS_SIM_DIR.
  static std::shared_ptr<SimNode> Start(const std::string& name, const sim::NodeSpec& spec);
  static std::shared_ptr<SimNode> Attach(const std::string& name);
  ~SimNode() override { Close(); }

  // Returns the node with the clock that it needs; the caller keeps both alive.
  std::shared_ptr<sim::OpenedNode> opened() const;
  sim::SharedNode& node() const { return opened()->node; }

  // Closes everything that this process created after the node, the newest first, and then stops
  // the node: monitors have released its GPUs by then, and knobs are restored.
  void Stop();

 private:
  SimNode() = default;
  void DoClose() override;
  void Abandon() override;

  std::shared_ptr<sim::OpenedNode> opened_;
  std::optional<sim::NodeDirectory> directory_;  // Set if this process started the node.
};

// A load on GPUs of a node. Used with the GIL held.
class SimWork final : public Closeable {
 public:
  // `gpus` are indices among the GPUs that NVML shows to this process; nullopt: all of them.
  static std::shared_ptr<SimWork> Open(const std::shared_ptr<SimNode>& node,
                                       const std::optional<std::vector<unsigned>>& gpus,
                                       const sim::LoadSpec& load);
  ~SimWork() override { Close(); }

  const std::vector<unsigned>& gpus() const { return gpus_; }  // Indices on the node.

  // Starts the load, which runs for `steps` steps if given.
  void Launch(std::optional<double> steps);
  // Starts `steps` steps, calls `compute` unless it is None, and waits for the steps without the
  // GIL. Returns the result of `compute`. Ctrl-C or an exception of `compute` ends the steps.
  pybind11::object Step(double steps, const pybind11::object& compute);

 private:
  void Wait();
  void Cancel();
  SimWork(const std::shared_ptr<SimNode>& node, std::vector<unsigned> gpus,
          const sim::LoadSpec& load);
  void DoClose() override { Cancel(); }
  void Abandon() override;

  std::shared_ptr<sim::OpenedNode> opened_;
  std::vector<unsigned> gpus_;
  sim::LoadSpec load_;
  std::shared_ptr<sim::NodeWork> running_;
};

namespace {

using namespace std::chrono_literals;

constexpr Seconds kRealSignalPeriod = 50ms;  // In real time, not in the node's.

// Translates indices among the visible GPUs into indices on the node.
Result<std::vector<unsigned>> OnNode(const sim::OpenedNode& opened,
                                     const std::optional<std::vector<unsigned>>& positions) {
  ZEUS_TRY(const Findings found, DiscoverNvidia(RealSurroundings(*opened.clock)));
  std::vector<unsigned> wanted(found.gpus.size());
  std::iota(wanted.begin(), wanted.end(), 0U);
  if (positions) wanted = *positions;
  if (wanted.empty())
    return Error{ErrorCode::kNotFound, positions || found.absent.empty()
                                           ? "work needs a GPU: name one at least"
                                           : "no GPU is visible: " + found.absent.front().reason};
  std::vector<unsigned> indices;
  for (const unsigned position : wanted) {
    if (position >= found.gpus.size())
      return Error{ErrorCode::kNotFound,
                   fmt::format("there is no GPU {}: {} are visible to this process", position,
                               found.gpus.size())};
    ZEUS_TRY(const unsigned index, sim::IndexOnNode(opened.node, *found.gpus[position]));
    if (std::find(indices.begin(), indices.end(), index) != indices.end())
      return Error{ErrorCode::kInvalidArgument, fmt::format("GPU {} was named twice", position)};
    indices.push_back(index);
  }
  return indices;
}

}  // namespace

std::shared_ptr<SimNode> SimNode::Start(const std::string& name, const sim::NodeSpec& spec) {
  auto clock = std::make_unique<SystemClock>();
  auto directory = Unwrap(sim::NodeDirectory::FromEnvironment(*clock));
  sim::SharedNode created = Unwrap(directory.Create(name, spec));
  std::shared_ptr<SimNode> node(new SimNode);
  node->opened_ = std::make_shared<sim::OpenedNode>(
      sim::OpenedNode{.clock = std::move(clock), .node = std::move(created)});
  node->directory_ = std::move(directory);
  return node;
}

std::shared_ptr<SimNode> SimNode::Attach(const std::string& name) {
  auto opened = Unwrap(sim::OpenNode(name));
  std::shared_ptr<SimNode> node(new SimNode);
  node->opened_ = std::make_shared<sim::OpenedNode>(std::move(opened));
  return node;
}

std::shared_ptr<sim::OpenedNode> SimNode::opened() const {
  CheckOpen("simulated node");
  return opened_;
}

void SimNode::Stop() {
  if (closed() || InForkedChild()) return Close();
  CloseNewerThan(*this);
  Close();
}

void SimNode::DoClose() {
  const auto opened = std::exchange(opened_, nullptr);
  const auto directory = std::exchange(directory_, std::nullopt);
  // The node may have been stopped before; then there is nothing to do.
  if (directory) (void)directory->Remove(opened->node.name());
}

void SimNode::Abandon() {
  // These are mappings of memory that the node's owner shares, without threads or locks of ours.
  opened_.reset();
  directory_.reset();
}

SimWork::SimWork(const std::shared_ptr<SimNode>& node, std::vector<unsigned> gpus,
                 const sim::LoadSpec& load)
    : Closeable(node.get()), opened_(node->opened()), gpus_(std::move(gpus)), load_(load) {}

std::shared_ptr<SimWork> SimWork::Open(const std::shared_ptr<SimNode>& node,
                                       const std::optional<std::vector<unsigned>>& gpus,
                                       const sim::LoadSpec& load) {
  const auto opened = node->opened();
  std::vector<unsigned> indices;
  {
    const WithoutGil released;
    indices = Unwrap(OnNode(*opened, gpus));
  }
  // An unknown GPU or an invalid load is reported now, not at the first step.
  for (const unsigned gpu : indices)
    Unwrap(sim::MakeLoad(load, Unwrap(opened->node.Read(gpu, opened->node.Now())).core.model()));
  return std::shared_ptr<SimWork>(new SimWork(node, std::move(indices), load));
}

void SimWork::Launch(std::optional<double> steps) {
  CheckOpen("work");
  if (running_)
    throw Failure({ErrorCode::kConflict, "this work runs already: use one for each thread"});
  sim::LoadSpec load = load_;
  if (steps) load.steps = *steps;
  std::shared_ptr<sim::NodeWork> work =
      Unwrap(sim::NodeWork::Attach(opened_->node, *opened_->clock, gpus_, load));
  if (!steps) work->KeepAlive();
  running_ = std::move(work);
}

void SimWork::Wait() {
  CheckOpen("work");
  const auto work = running_;
  while (work) {
    bool done = false;
    {
      const WithoutGil released;
      done = Unwrap(work->WaitFor(kRealSignalPeriod));
    }
    if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
    if (closed())
      throw Failure({ErrorCode::kUnavailable, "this work was stopped while it was waited for"});
    if (done) break;
  }
}

void SimWork::Cancel() { running_.reset(); }

pybind11::object SimWork::Step(double steps, const pybind11::object& compute) {
  Launch(steps);
  // The whole step is one call, so that Ctrl-C cannot interrupt between its beginning and its end.
  struct CancelAtEnd {
    SimWork& work;
    ~CancelAtEnd() { work.Cancel(); }
  } const cancel_at_end{*this};
  pybind11::object result = compute.is_none() ? compute : compute();
  Wait();
  return result;
}

void SimWork::Abandon() {
  // In a forked child the thread does not exist, and the load belongs to the parent.
  static auto* const abandoned = new std::vector<std::shared_ptr<sim::NodeWork>>();
  static auto* const nodes = new std::vector<std::shared_ptr<sim::OpenedNode>>();
  abandoned->push_back(std::move(running_));
  nodes->push_back(std::move(opened_));
}

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
