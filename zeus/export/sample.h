#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"
#include "zeus/device/gpu.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus {

// Seconds since 1970 (UTC), the time stamp of all records.
inline Seconds UnixTime(WallTime time) { return time.time_since_epoch(); }

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

// Takes samples of a monitored node from its recording: no driver call. The node must outlive it.
// Thread-safe.
class NodeSampler {
 public:
  // Reads the range of the power limit of every GPU once.
  explicit NodeSampler(NodeMonitor& node);

  Sample Take() const;

  const std::vector<DeviceIdentity>& devices() const { return identities_; }

 private:
  EnergyMonitor& monitor_;
  const TimePoint start_;
  std::vector<DeviceIdentity> identities_;
  std::vector<std::optional<PowerLimit>> limits_;
};

// Samples as comma-separated values: a row per device, so that the columns are the same on every
// machine. Unknown values are empty cells. See docs/formats.md.
std::string SampleCsvHeader();
std::vector<std::string> SampleCsvRows(const Sample& sample);

}  // namespace zeus
