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
  bool cpus = true;    // CPU packages and their memory.
  bool rails = true;   // Power rails of the board.
  bool thread = true;  // Start a recorder thread.
  // Split energy with other processes of this user that measure the same devices.
  bool share = true;
  // Temperature, clocks, utilisation, limits and average power of GPUs.
  Seconds telemetry_interval{1.0};
  std::function<void()> synchronize{};
  // Calibration of a GPU where there is one: replaces the prior. ProfileStore::Lookup() gives what
  // `zeus calibrate` kept.
  std::function<std::optional<SensorProfile>(const GpuIdentity&)> calibration{};
};

// Everything of a node, recorded: devices, monitor and recorder thread together. What programs use.
// Thread-safe.
class NodeMonitor {
 public:
  static Result<std::unique_ptr<NodeMonitor>> Open(Clock& clock, Node node,
                                                   NodeMonitorOptions options = {});
  ~NodeMonitor();

  EnergyMonitor& monitor() { return *monitor_; }
  const Node& node() const { return node_; }
  // The GPU behind a device of the monitor; null where it is none.
  Gpu* gpu(std::size_t device) const { return gpus_[device]; }

 private:
  NodeMonitor(Node node, std::vector<Gpu*> gpus, std::unique_ptr<EnergyMonitor> monitor,
              bool thread);

  Node node_;
  std::vector<Gpu*> gpus_;
  std::unique_ptr<EnergyMonitor> monitor_;
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace zeus
