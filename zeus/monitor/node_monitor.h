#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/device/node.h"
#include "zeus/monitor/energy_monitor.h"

namespace zeus {

// Which devices, and how.
struct NodeMonitorOptions {
  // By number: 2 is "gpu:2", whatever else is lost. All when not set. kNotFound names a wrong one.
  std::optional<std::vector<unsigned>> gpus{};
  bool cpus = true;   // CPU packages and their memory.
  bool rails = true;  // Power rails of the board.
  // Start a recorder thread where one is needed: not for devices with an energy counter that
  // another process reads, unless the energy is shared with other processes.
  bool thread = true;
  // The recorder thread asks before each pause how long it shall last at least, to rest while
  // nobody wants readings; counters that would wrap are read in time. Wake() makes it ask again. By
  // default the devices are read as often as their sensors show something.
  std::function<Seconds()> shortest_pause{};
  // Split energy with other processes of this user that measure the same devices.
  bool share = true;
  // Temperature, clocks, utilisation, limits and average power of GPUs.
  Seconds telemetry_interval{1.0};
  std::function<void()> synchronize{};
  // See EnergyMonitor::Options.
  std::function<void(const std::string& device, TimePoint, const DeviceReading&)> recorded{};
  // Finds the devices for OpenThisMachine(); Discover() where it is not set.
  std::function<Result<Node>(Clock&)> find_devices{};
  // Returns the calibration of a GPU, which replaces the prior, or nullopt. By default it is what
  // `zeus calibrate` kept for this user or this machine; see also IgnoreCalibrations().
  std::function<std::optional<SensorProfile>(const GpuIdentity&)> calibration{};
};

// For NodeMonitorOptions::calibration: every GPU has its prior.
inline std::optional<SensorProfile> IgnoreCalibrations(const GpuIdentity& /*gpu*/) {
  return std::nullopt;
}

// Everything of a node, recorded: devices, monitor and recorder thread together. What programs use.
// Thread-safe.
class NodeMonitor {
 public:
  // Opens the devices of this machine that the process may see, with their calibrations. The clock
  // must outlive the monitor.
  static Result<std::unique_ptr<NodeMonitor>> OpenThisMachine(Clock& clock,
                                                              NodeMonitorOptions options = {});
  // The same for a node that was discovered, or made, before.
  static Result<std::unique_ptr<NodeMonitor>> Open(Clock& clock, Node node,
                                                   NodeMonitorOptions options = {});
  ~NodeMonitor();

  // Makes the recorder thread, where there is one, look at the devices now.
  void Wake();

  EnergyMonitor& monitor() { return *monitor_; }
  const Node& node() const { return node_; }
  // Names the hardware of a device, the same for all processes and on all machines: the UUID of a
  // GPU, "cpu:0@" and the boot of the machine.
  const std::string& key(std::size_t device) const { return keys_[device]; }
  // The GPU behind a device of the monitor; null where it is none.
  Gpu* gpu(std::size_t device) const { return gpus_[device]; }
  // Whether a calibration of the device is in use, instead of a prior.
  bool calibrated(std::size_t device) const { return calibrated_[device]; }

 private:
  NodeMonitor(Node node, std::vector<Gpu*> gpus, std::vector<std::string> keys,
              std::vector<bool> calibrated, std::unique_ptr<EnergyMonitor> monitor);
  void StartThread(std::function<Seconds()> shortest_pause);

  Node node_;
  std::vector<Gpu*> gpus_;
  std::vector<std::string> keys_;
  std::vector<bool> calibrated_;
  std::unique_ptr<EnergyMonitor> monitor_;
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace zeus
