#include "python/bindings/monitor.h"

#include <fmt/format.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdlib>
#include <utility>

#include "python/bindings/errors.h"
#include "python/bindings/without_gil.h"
#include "zeus/device/node.h"
#include "zeus/device/sim/node_directory.h"

namespace zeus::python {
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
    Node found = Unwrap(Discover(RealSurroundings(system)));
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
