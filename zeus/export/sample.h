#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"
#include "zeus/device/gpu.h"
#include "zeus/monitor/energy_monitor.h"

namespace zeus {

// A device as records and metrics name it.
struct DeviceIdentity {
  std::string name;   // "gpu:0"
  std::string model;  // Empty if unknown.
  std::string uuid;   // The UUID of a GPU; empty if it has none.

  std::string_view kind() const;   // "gpu", "cpu", "dram", "rail": before the colon.
  std::string_view index() const;  // "0", "VDD_IN": after it.
};

struct DeviceSample {
  DeviceIdentity identity;
  EnergyMonitor::Present present;
  // The range of the power limit; read once, as it does not change.
  std::optional<PowerRange> limit_range{};
  std::optional<Watts> default_limit{};
  bool in_total = true;  // See DeviceMeasurement.
};

// The readings of all devices at one moment: a line of `zeus monitor`, an answer to Prometheus.
struct Sample {
  WallTime taken;
  TimePoint at;      // The same moment by the clock of the monitor.
  Seconds recorded;  // Time since recording began, over which energies add up.
  std::vector<DeviceSample> devices;
};

// The reason why a device cannot be read at present, or null when it can. The energy that it used
// before may be known all the same.
const Error* WhyUnreadable(const EnergyMonitor::Present& present);

}  // namespace zeus
