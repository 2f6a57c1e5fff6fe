#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/monitor/energy_monitor.h"

namespace zeus {

// What an epoch took on the devices of this process, or of all.
struct EpochReading {
  Seconds time{0};
  Joules energy{0};
  Joules own_sigma{0};                  // Without shared_sigma.
  Joules shared_sigma{0};               // Common to all epochs: gain of the sensors.
  std::vector<std::string> missing{};   // Devices without a number.
  std::optional<WindowId> unsettled{};  // The sensors have yet to show its end.
};

// Measures epochs as windows of a monitor: the energy of the GPUs, or of everything where there are
// none. Measuring that fails is said once, and the devices are missing then. One owner.
class EpochMeter {
 public:
  EpochMeter(EnergyMonitor& monitor, std::string window);
  ~EpochMeter();  // An epoch that is open is forgotten.
  EpochMeter(const EpochMeter&) = delete;
  EpochMeter& operator=(const EpochMeter&) = delete;

  void Begin();
  // Of the open epoch, so far.
  EpochReading Peek();
  EpochReading End();
  // Waits at most `patience` until the sensors have shown its end.
  void Settle(EpochReading& reading, Seconds patience);

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
