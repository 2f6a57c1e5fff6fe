#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/process.h"
#include "zeus/base/result.h"
#include "zeus/c/zeus.h"
#include "zeus/device/knobs/guarded_knob.h"
#include "zeus/monitor/measurement.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus::c {

// A limit that was set through the C interface. If its monitor is closed first, that restores the
// limit.
class HeldLimit {
 public:
  explicit HeldLimit(ScopedPowerLimit scope) : scope_(std::move(scope)) {}
  Status Restore();

 private:
  std::mutex mutex_;
  std::optional<ScopedPowerLimit> scope_;  // Empty once restored.
};

struct DeviceText {
  std::string name;
  std::string model;
  std::string uuid;
  std::string pci_address;
  zeus_device_kind kind;
};

// Checks that the handle is not NULL and was opened by this process, not by its parent.
Status CheckMonitor(const zeus_monitor* monitor);
Status CheckDevice(const zeus_monitor& monitor, std::size_t device);
// Returns an error if the device is no GPU.
Result<Gpu*> FindGpu(const zeus_monitor& monitor, std::size_t device);

std::unique_ptr<zeus_measurement> MakeHandle(Measurement measurement);

}  // namespace zeus::c

struct zeus_monitor {
  zeus::SystemClock clock;
  unsigned fork_generation = 0;
  std::unique_ptr<zeus::NodeMonitor> node;
  std::vector<zeus::c::DeviceText> devices;

  std::mutex limits_mutex;
  std::vector<std::weak_ptr<zeus::c::HeldLimit>> limits;
};

struct zeus_power_limit {
  std::shared_ptr<zeus::c::HeldLimit> held;
};

struct zeus_measurement {
  zeus::Measurement measurement;
};
