#include "apps/zeus/run/run_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "apps/zeus/lists.h"
#include "zeus/monitor/profile_store.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr const char* kWindow = "run";

// Absent devices that have a name ("gpu:0" fell off the bus) are missed in the total; kinds of
// devices ("AMD GPUs") are told only where there is nothing else.
std::vector<DeviceMeasurement> Unmeasured(const Node& node, const MeterOptions& options) {
  std::vector<DeviceMeasurement> devices;
  const bool nothing = node.gpus.empty() && node.cpus.empty() && node.rails.empty();
  for (const Absence& absence : node.absent) {
    const bool named = absence.what.find(':') != std::string::npos;
    if (named && options.gpus) continue;  // It is not among the chosen ones.
    if (named || nothing) {
      devices.push_back({.device = absence.what,
                         .energy = Error{ErrorCode::kUnavailable, absence.reason},
                         .in_total = named});
    }
  }
  return devices;
}

Seconds SlowestSensor(const Measurement& measurement) {
  Seconds slowest(0);
  for (const DeviceMeasurement& device : measurement.devices)
    if (device.energy.ok()) slowest = std::max(slowest, device.energy.value().update_period);
  return slowest;
}

}  // namespace

bool WorthRefining(const Measurement& measurement) {
  const Seconds period = SlowestSensor(measurement);
  if (period <= 0s) return false;
  // Shorter windows stay unresolved however long we wait. In longer ones what is gained at the end,
  // a fraction of one update, is far below the error of any board's calibration.
  constexpr double kFewestUpdates = 2;
  constexpr double kMostUpdates = 1000;
  const double updates = measurement.time / period;
  return updates >= kFewestUpdates && updates <= kMostUpdates;
}

Result<std::unique_ptr<RunMeter>> RunMeter::Open(Clock& clock, const MeterOptions& options) {
  auto discovered = Discover(RealSurroundings(clock));
  Node node;
  if (discovered.ok()) {
    node = std::move(discovered).value();
  } else {
    // CUDA_VISIBLE_DEVICES is the command's affair: it may know what to do with it.
    node.absent.push_back({"devices", discovered.error().message, ""});
  }
  NodeMonitorOptions choice;
  choice.cpus = options.cpus;
  choice.calibration = ProfileStore::FromEnvironment(RealSurroundings(clock).environment).Lookup();
  if (options.gpus) {
    ZEUS_TRY(choice.gpus, GpuPositions(node, *options.gpus));
  }
  if (!options.cpus) node.cpus.clear();
  std::vector<DeviceMeasurement> unmeasured = Unmeasured(node, options);
  std::unique_ptr<NodeMonitor> monitor;
  if (!node.gpus.empty() || !node.cpus.empty() || !node.rails.empty()) {
    auto opened = NodeMonitor::Open(clock, std::move(node), std::move(choice));
    if (opened.ok()) {
      monitor = std::move(opened).value();
    } else {
      unmeasured.push_back({.device = "devices", .energy = opened.error(), .in_total = false});
    }
  }
  return std::unique_ptr<RunMeter>(new RunMeter(clock, std::move(monitor), std::move(unmeasured)));
}

RunMeter::RunMeter(Clock& clock, std::unique_ptr<NodeMonitor> node,
                   std::vector<DeviceMeasurement> unmeasured)
    : clock_(clock), node_(std::move(node)), unmeasured_(std::move(unmeasured)), begun_(Ok()) {}

void RunMeter::Begin() {
  begin_ = clock_.Now();
  started_ = clock_.WallNow();
  if (node_ == nullptr) return;
  WindowOptions window;
  window.if_open = IfOpen::kRestart;
  const auto begun = node_->monitor().BeginWindow(kWindow, window);
  begun_ = begun.ok() ? Ok() : Status(begun.error());
}

Measurement RunMeter::End(Refinement refinement) {
  Measurement measurement{.window = kWindow, .started = started_, .begin = begin_};
  measurement.time = clock_.Now() - begin_;
  if (node_ != nullptr) {
    auto ended = EndWindow(refinement);
    if (ended.ok()) {
      measurement = std::move(ended).value();
    } else {
      for (std::size_t i = 0; i < node_->monitor().device_count(); ++i)
        measurement.devices.push_back(
            {.device = node_->monitor().device_name(i), .energy = ended.error()});
    }
  }
  measurement.devices.insert(measurement.devices.end(), unmeasured_.begin(), unmeasured_.end());
  return measurement;
}

Result<Measurement> RunMeter::EndWindow(Refinement refinement) {
  ZEUS_RETURN_IF_ERROR(begun_);
  ZEUS_TRY(Measurement measurement, node_->monitor().EndWindow(kWindow));
  const bool refine = refinement == Refinement::kAlways ||
                      (refinement == Refinement::kAuto && WorthRefining(measurement));
  if (!refine) return measurement;
  constexpr double kUpdatesToWait = 3;
  const Seconds patience = std::max<Seconds>(100ms, kUpdatesToWait * SlowestSensor(measurement));
  auto refined = node_->monitor().Refine(measurement.id, patience);
  return refined.ok() ? std::move(refined).value() : std::move(measurement);
}

std::vector<DeviceIdentity> RunMeter::Devices() const {
  std::vector<DeviceIdentity> devices;
  if (node_ == nullptr) return devices;
  for (std::size_t i = 0; i < node_->monitor().device_count(); ++i) {
    DeviceIdentity device{.device = node_->monitor().device_name(i), .model = {}, .uuid = {}};
    if (const Gpu* gpu = node_->gpu(i); gpu != nullptr) {
      device.model = gpu->identity().model;
      device.uuid = gpu->identity().uuid;
    }
    for (const auto& cpu : node_->node().cpus)
      if (cpu->name() == device.device) device.model = cpu->identity().model;
    devices.push_back(std::move(device));
  }
  return devices;
}

std::vector<Celsius> RunMeter::Temperatures() const {
  std::vector<Celsius> temperatures;
  if (node_ == nullptr) return temperatures;
  for (std::size_t i = 0; i < node_->monitor().device_count(); ++i) {
    Gpu* gpu = node_->gpu(i);
    if (gpu == nullptr) continue;
    if (const auto temperature = gpu->Temperature(); temperature.ok())
      temperatures.push_back(temperature.value());
  }
  return temperatures;
}

}  // namespace zeus::cli
