#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/optimizer/collective.h"

namespace zeus {

// Returns the positions of the devices whose energy counts for the cost of a training (Zeus §2.2):
// the GPUs, or all devices of the total if there are no GPUs.
std::vector<std::size_t> CountedDevices(const EnergyMonitor& monitor);

// A GPU that several ranks measure, as when each has a monitor of the whole machine.
struct SharedGpu {
  std::size_t device;  // Position in this rank's monitor.
  int first_rank;      // The first rank that measures it.
};

// Returns the GPUs of this rank that an earlier rank measures, too. All ranks must call it.
Result<std::vector<SharedGpu>> GpusOfEarlierRanks(NodeMonitor& monitor, Collective& collective);

// Time and energy of an epoch on the devices of this process, or of all ranks.
struct EpochReading {
  Seconds time{0};
  Joules energy{0};
  Joules own_sigma{0};                  // Error of this epoch alone, without shared_sigma.
  Joules shared_sigma{0};               // Error common to all epochs: the gain of the sensors.
  std::vector<std::string> missing{};   // Devices whose energy is unknown.
  std::optional<WindowId> unrefined{};  // Set until the sensors have shown the end of the epoch.
};

// Measures epochs as windows of a monitor: the energy of CountedDevices(). If that fails, the first
// failure is logged, and the devices are `missing` in the reading. One owner.
class EpochMeter {
 public:
  EpochMeter(EnergyMonitor& monitor, std::string window);
  ~EpochMeter();  // Cancels an open epoch.
  EpochMeter(const EpochMeter&) = delete;
  EpochMeter& operator=(const EpochMeter&) = delete;

  void Begin();
  // Returns the reading of the open epoch so far.
  EpochReading Peek();
  EpochReading End();
  // Refines the reading of a past epoch; waits at most `timeout` until the sensors have shown its
  // end.
  void Refine(EpochReading& reading, Seconds timeout);

  Clock& clock() { return monitor_.clock(); }

 private:
  EpochReading Read(Measurement measured) const;
  EpochReading Unknown(const Error& error);

  EnergyMonitor& monitor_;
  std::string window_;
  std::vector<std::string> counted_;
  std::optional<WindowId> open_{};
  TimePoint begun_{};
  bool failed_ = false;
};

}  // namespace zeus
