#include "python/bindings/monitor.h"

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "python/bindings/closeable.h"
#include "python/bindings/errors.h"
#include "zeus/base/log.h"
#include "zeus/client/node/open_node.h"
#include "zeus/device/knobs/knob_journal.h"
#include "zeus/device/knobs/knob_repair.h"
#include "zeus/device/node.h"
#include "zeus/device/sim/node_directory.h"

namespace zeus::python {
namespace {

// Failures are only logged: they must not prevent the discovery of devices.
void RepairLeftovers(Clock& clock, const Surroundings& surroundings) {
  auto folder = KnobFolder();
  if (!folder.ok()) return log::Debug("{}", folder.error().message);
  KnobJournal journal(clock, std::move(folder).value());
  const auto repairs = RepairKnobs(journal, surroundings);
  if (!repairs.ok()) return log::Warning("{}", repairs.error().message);
  for (const KnobRepair& repair : repairs.value())
    if (repair.outcome == KnobRepair::Outcome::kFailed) log::Warning("{}", ToText(repair));
}

}  // namespace

std::shared_ptr<Machine> Machine::Open(const std::string& sysfs, const std::string& procfs,
                                       const std::string& dev) {
  const WithoutGil released;
  std::shared_ptr<Machine> machine(new Machine());
  Surroundings surroundings = RealSurroundings(machine->clock_);
  surroundings.sysfs = sysfs;
  surroundings.procfs = procfs;
  surroundings.dev = dev;
  RepairLeftovers(machine->clock_, surroundings);
  machine->node_ = Unwrap(client::OpenNode(surroundings), Family::kGpu);
  return machine;
}

namespace {

constexpr std::array<const char*, 3> kFrameworks = {"torch", "jax", "cupy"};

}  // namespace

Synchronizer::Synchronizer(const std::string& framework, std::vector<int> gpus)
    : modules_(py::module_::import("sys").attr("modules")), gpus_(std::move(gpus)) {
  for (const char* name : kFrameworks)
    if (framework.empty() || framework == name)
      names_.push_back(py::reinterpret_steal<py::str>(PyUnicode_InternFromString(name)));
  if (names_.empty())
    throw Failure(
        {ErrorCode::kInvalidArgument,
         fmt::format("sync_execution_with is \"{}\": one of \"torch\", \"jax\", \"cupy\", "
                     "or None for the one that the program uses",
                     framework)});
}

void Synchronizer::LookForFramework() {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (PyDict_GetItemWithError(modules_.ptr(), names_[i].ptr()) == nullptr) continue;
    const py::object answer =
        py::module_::import("zeus.utils.framework").attr("synchronizer")(names_[i], gpus_);
    if (answer.is(py::handle(Py_NotImplemented)))
      continue;  // The framework is still being imported.
    if (answer.is_none()) {
      names_.erase(names_.begin() +
                   static_cast<std::ptrdiff_t>(i--));  // The framework has no GPU to wait for.
      continue;
    }
    function_ = answer;
    Call();
    return;
  }
}

namespace {

// Returns the time scale of the simulated node that the environment names; 1 if there is none.
double TimeScale(Clock& clock) {
  const char* name = std::getenv("ZEUS_SIM_NODE");
  if (name == nullptr || *name == '\0') return 1;
  const auto directory = sim::NodeDirectory::FromEnvironment(clock);
  if (!directory.ok()) return 1;
  const auto node = directory.value().Open(name, sim::Access::kRead);
  return node.ok() ? node.value().time_scale() : 1;
}

std::string NothingToMeasure(const std::vector<Absence>& absent) {
  std::string text = "no device here can be measured (see zeus doctor)";
  for (const Absence& absence : absent) text += "; " + absence.what + ": " + absence.reason;
  return text;
}

// Keeps only the requested packages.
Status KeepCpus(Node& node, const std::vector<unsigned>& wanted) {
  std::vector<std::unique_ptr<CpuPackage>> kept;
  for (const unsigned index : wanted) {
    if (index >= node.cpus.size())
      return Error{ErrorCode::kNotFound,
                   fmt::format("there is no CPU {}: this machine shows {} whose energy can be read "
                               "(see zeus doctor)",
                               index, node.cpus.size())};
    if (!node.cpus[index])
      return Error{ErrorCode::kInvalidArgument, fmt::format("CPU {} was named twice", index)};
    kept.push_back(std::move(node.cpus[index]));
  }
  node.cpus = std::move(kept);
  return Ok();
}

}  // namespace

// Members are destroyed in reverse order: the thread ends before what it reads.
struct Monitor::Recording {
  SystemClock system;
  std::unique_ptr<ScaledClock> scaled;
  std::unique_ptr<NodeMonitor> node;
  std::unique_ptr<Ticker> ticker;  // Used if NodeMonitor's own thread cannot be.

  std::vector<Absence> Open(const Options& options) {
    if (const double scale = TimeScale(system); scale != 1)
      scaled = std::make_unique<ScaledClock>(system, scale);
    const bool real = scaled == nullptr;
    Node found = Unwrap(client::OpenThisNode(system));
    if (options.cpus) Check(KeepCpus(found, *options.cpus));
    std::vector<Absence> absent = found.absent;
    node = Unwrap(NodeMonitor::Open(real ? static_cast<Clock&>(system) : *scaled, std::move(found),
                                    {.gpus = options.gpus,
                                     .cpus = real,  // The time of real CPUs cannot be scaled.
                                     .rails = real,
                                     .thread = real,
                                     .share = options.share && real,
                                     .telemetry_interval = options.telemetry_interval}));
    if (node->monitor().device_count() == 0)
      throw Failure({ErrorCode::kNotFound, NothingToMeasure(absent)});
    if (!real)
      ticker = std::make_unique<Ticker>(
          "zeus-recorder", [this] { return scaled->Unscaled(node->monitor().Step()); });
    return absent;
  }
};

std::shared_ptr<Monitor> Monitor::Open(const Options& options) {
  std::vector<int> gpus;
  if (options.gpus) gpus.assign(options.gpus->begin(), options.gpus->end());
  std::shared_ptr<Monitor> monitor(new Monitor(Synchronizer(options.framework, std::move(gpus))));
  auto recording = std::make_shared<Recording>();
  {
    const WithoutGil released;
    monitor->absent_ = recording->Open(options);
    if (!options.log_file.empty()) {
      std::vector<std::string> devices;
      const EnergyMonitor& energy = recording->node->monitor();
      for (std::size_t i = 0; i < energy.device_count(); ++i)
        devices.push_back(energy.device_name(i));
      monitor->log_ = std::make_shared<SharedLog>(Unwrap(WindowLog::Open(
          options.log_file, std::move(devices), options.log_columns, options.if_log_exists)));
    }
  }
  monitor->recording_ = std::move(recording);
  return monitor;
}

NodeMonitor& Monitor::node() const {
  CheckOpen("monitor");
  return *recording_->node;
}

std::shared_ptr<NodeMonitor> Monitor::recording() const { return {recording_, &node()}; }

double Monitor::time_scale() const {
  CheckOpen("monitor");
  return recording_->scaled ? recording_->scaled->scale() : 1;
}

Status Monitor::Log(const Measurement& measurement) {
  return log_ ? log_->Write(measurement) : Ok();
}

void Monitor::DoClose() {
  auto recording = std::exchange(recording_, nullptr);
  const auto log = std::move(log_);
  const WithoutGil released;
  recording.reset();
}

void Monitor::Abandon() {
  // In a forked child the thread does not exist, and the holders of locks may not either.
  static auto* const recordings = new std::vector<std::shared_ptr<Recording>>();
  static auto* const logs = new std::vector<std::shared_ptr<SharedLog>>();
  recordings->push_back(std::move(recording_));
  logs->push_back(std::move(log_));
}

}  // namespace zeus::python
