#include "apps/zeus/run/run_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "apps/zeus/lists.h"
#include "zeus/client/node/open_node.h"
#include "zeus/device/knobs/knob_repair.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr const char* kWindow = "run";

// How long a device that answered at first may take later, where its answer improves the result.
constexpr Seconds kLateAnswer{1.0};
// Ending the recording waits for the readings under way.
constexpr Seconds kClosing{0.5};
// Drivers that answer at all quickly may also be asked what is not needed for measuring.
constexpr Seconds kQuickDiscovery{1.0};

bool IsChosen(const MeterOptions& options, const std::string& device) {
  return !options.gpus || std::ranges::any_of(*options.gpus, [&](unsigned number) {
    return device == fmt::format("gpu:{}", number);
  });
}

// "gpu:0", unlike "gpu:0: energy of each MIG instance".
bool IsDeviceName(const std::string& what) {
  return what.find(':') != std::string::npos && what.find(' ') == std::string::npos;
}

// Remarks on measured devices: the energy of a MIG instance is that of its whole board.
std::vector<std::string> RemarksOn(const Node& node, const MeterOptions& options) {
  std::vector<std::string> remarks;
  for (const Absence& absence : node.absent) {
    const std::size_t colon = absence.what.find(": ");
    if (colon != std::string::npos && IsChosen(options, absence.what.substr(0, colon)))
      remarks.push_back(fmt::format("{} is not known: {}", absence.what, absence.reason));
  }
  return remarks;
}

// Absent devices that have a name ("gpu:0" fell off the bus) are missed in the total; kinds of
// devices ("AMD GPUs") are told only where there is nothing else.
std::vector<DeviceMeasurement> Unmeasured(const Node& node, const MeterOptions& options) {
  std::vector<DeviceMeasurement> devices;
  const bool nothing = node.gpus.empty() && node.cpus.empty() && node.rails.empty();
  for (const Absence& absence : node.absent) {
    const bool named = IsDeviceName(absence.what);
    if (named && !IsChosen(options, absence.what)) continue;
    if (named || nothing) {
      devices.push_back({.device = absence.what,
                         .energy = Error{ErrorCode::kUnavailable, absence.reason},
                         .in_total = named});
    }
  }
  return devices;
}

// The chosen GPUs that can be measured. kNotFound for a number that no GPU has.
Result<std::vector<unsigned>> Measurable(const Node& node, const std::vector<unsigned>& chosen) {
  std::vector<unsigned> measurable;
  for (const unsigned number : chosen) {
    const auto lost = std::ranges::find(node.absent, fmt::format("gpu:{}", number), &Absence::what);
    if (lost == node.absent.end()) measurable.push_back(number);
  }
  ZEUS_RETURN_IF_ERROR(CheckGpus(node, measurable));
  return measurable;
}

// Surroundings in which all GPUs are visible.
Surroundings Unrestricted(Surroundings surroundings) {
  surroundings.environment = [environment =
                                  std::move(surroundings.environment)](const std::string& name) {
    return name.ends_with("_VISIBLE_DEVICES") ? std::nullopt : environment(name);
  };
  return surroundings;
}

// The keys of the GPUs that the environment shows; nullopt where it shows all.
std::optional<std::vector<std::string>> VisibleKeys(const Surroundings& surroundings) {
  bool restricted = false;
  for (const char* variable :
       {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"})
    restricted = restricted || surroundings.environment(variable).has_value();
  if (!restricted) return std::nullopt;
  std::vector<std::string> keys;
  const auto node = client::OpenNode(surroundings);
  if (!node.ok()) return keys;  // The command's affair.
  for (const auto& gpu : node.value().gpus) {
    keys.push_back(gpu->identity().uuid);
    keys.push_back(gpu->identity().pci_address);
  }
  return keys;
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

Result<RunMeter::Look> RunMeter::LookAround(Clock& clock, const MeterOptions& options) {
  Surroundings surroundings = RealSurroundings(clock);
  surroundings.answer_within = options.driver_timeout;
  const TimePoint begin = clock.Now();
  const bool whole = options.scope == MeterScope::kWholeNode && !options.gpus;
  auto discovered = client::OpenNode(whole ? Unrestricted(surroundings) : surroundings);
  // A driver that is slow is asked no more than measuring needs.
  const bool quick = clock.Now() - begin < kQuickDiscovery;
  Node node;
  if (discovered.ok()) {
    node = std::move(discovered).value();
  } else {
    // CUDA_VISIBLE_DEVICES is the command's affair: it may know what to do with it.
    node.absent.push_back({"devices", discovered.error().message, ""});
  }
  NodeMonitorOptions choice;
  choice.cpus = options.cpus;
  if (options.gpus) {
    ZEUS_TRY(choice.gpus, Measurable(node, *options.gpus));
  }
  if (!options.cpus) node.cpus.clear();
  Look look{.node = nullptr,
            .unmeasured = Unmeasured(node, options),
            .remarks = RemarksOn(node, options)};
  if (whole) look.visible = VisibleKeys(surroundings);
  if (quick) WarnOfUnexplainedLimits(node, clock);
  if (node.gpus.empty() && node.cpus.empty() && node.rails.empty()) return look;
  auto opened = NodeMonitor::Open(clock, std::move(node), std::move(choice));
  if (opened.ok()) {
    look.node = std::move(opened).value();
  } else {
    look.unmeasured.push_back({.device = "devices", .energy = opened.error(), .in_total = false});
  }
  return look;
}

Result<std::unique_ptr<RunMeter>> RunMeter::Open(std::shared_ptr<Clock> clock, SignalWatch& signals,
                                                 const MeterOptions& options) {
  std::unique_ptr<RunMeter> meter(new RunMeter(clock, signals));
  DetachedCall<Result<Look>> looking([clock, options] { return LookAround(*clock, options); });
  // The NVIDIA driver has the time that the option gives. What else is looked at are files, which
  // take milliseconds; a kernel driver that hangs in one of them is not waited for either.
  auto look = meter->WaitFor(looking, options.driver_timeout + kLateAnswer);
  if (!look) {
    meter->unmeasured_.push_back(
        {.device = "devices",
         .energy = Error{ErrorCode::kUnavailable, "the drivers did not answer in time"},
         .in_total = false});
    return meter;
  }
  if (!look->ok()) return std::move(*look).error();
  meter->node_ = std::move(look->value().node);
  meter->unmeasured_ = std::move(look->value().unmeasured);
  meter->remarks_ = std::move(look->value().remarks);
  meter->visible_ = std::move(look->value().visible);
  return meter;
}

RunMeter::~RunMeter() {
  if (node_ == nullptr) return;
  DetachedCall<bool> closing([node = std::move(node_), clock = clock_]() mutable {
    node.reset();
    return true;
  });
  WaitFor(closing, kClosing);
}

template <typename T>
std::optional<T> RunMeter::WaitFor(DetachedCall<T>& call, Seconds timeout) {
  const TimePoint deadline = clock_->Now() + timeout;
  while (!asked_to_end_ && !call.FinishedWithin(Seconds(0)) && clock_->Now() < deadline) {
    const auto signal = signals_.NextUnless(call.descriptor(), deadline - clock_->Now());
    if (signal && AsksToEnd(static_cast<int>(signal->ssi_signo)))
      asked_to_end_ = static_cast<int>(signal->ssi_signo);
  }
  return call.TakeWithin(Seconds(0));
}

void RunMeter::Begin() {
  begin_ = clock_->Now();
  started_ = clock_->WallNow();
  if (node_ == nullptr) return;
  WindowOptions window;
  window.if_open = IfOpen::kRestart;
  const auto begun = node_->monitor().BeginWindow(kWindow, window);
  begun_ = begun.ok() ? Ok() : Status(begun.error());
}

Measurement RunMeter::End(Refinement refinement) {
  Measurement measurement{.window = kWindow, .started = started_, .begin = begin_};
  measurement.time = clock_->Now() - begin_;
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
  const Seconds timeout = std::max<Seconds>(100ms, kUpdatesToWait * SlowestSensor(measurement));
  DetachedCall<Result<Measurement>> refining(
      [node = node_, clock = clock_, id = measurement.id, timeout] {
        return node->monitor().Refine(id, timeout);
      });
  auto refined = WaitFor(refining, timeout + kLateAnswer);
  return refined && refined->ok() ? std::move(*refined).value() : std::move(measurement);
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
    device.calibrated = node_->calibrated(i);
    for (const auto& cpu : node_->node().cpus)
      if (cpu->name() == device.device) device.model = cpu->identity().model;
    devices.push_back(std::move(device));
  }
  return devices;
}

void RunMeter::Describe(RankShare& share) const {
  const std::vector<DeviceIdentity> devices = Devices();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const DeviceIdentity& device = devices[i];
    const std::string& key = node_->key(i);
    if (key.empty()) continue;
    share.devices.push_back({.device = device.device,
                             .key = key,
                             .model = device.model,
                             .uuid = device.uuid,
                             .calibrated = device.calibrated});
    const bool seen = !visible_ || node_->gpu(i) == nullptr ||
                      std::ranges::find(*visible_, key) != visible_->end();
    if (seen) share.own.push_back(key);
  }
}

std::vector<Celsius> RunMeter::Temperatures() {
  if (node_ == nullptr) return {};
  DetachedCall<std::vector<Celsius>> reading([node = node_, clock = clock_] {
    std::vector<Celsius> temperatures;
    for (std::size_t i = 0; i < node->monitor().device_count(); ++i) {
      Gpu* gpu = node->gpu(i);
      if (gpu == nullptr) continue;
      if (const auto temperature = gpu->Temperature(); temperature.ok())
        temperatures.push_back(temperature.value());
    }
    return temperatures;
  });
  return WaitFor(reading, kLateAnswer).value_or(std::vector<Celsius>());
}

}  // namespace zeus::cli
