#pragma once

#include <optional>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/energy_meter.h"
#include "zeus/device/gpu.h"

namespace zeus {

// Everything that one visit of a recorder to a device showed. nullopt: it was not asked for.
struct DeviceReading {
  std::optional<Result<EnergyReading>> energy{};
  std::optional<Result<Watts>> power{};
  std::optional<GpuReading> telemetry{};
};

struct TimedReading {
  TimePoint time{};  // Right after the driver answered.
  DeviceReading reading{};
  bool after_gap = false;  // Readings between the one before and this one were lost.
};

// The readings of a device that a recorder in another process takes, in the order in which it took
// them. A monitor that follows them gets what a recorder of its own would have got. One owner.
class ReadingFeed {
 public:
  virtual ~ReadingFeed() = default;

  // Whether Next() has one. Costs no system call, unless nothing has come for a second.
  virtual bool HasNext(TimePoint now) = 0;
  // Times do not decrease, and none lies after `now`.
  virtual std::optional<TimedReading> Next(TimePoint now) = 0;
};

}  // namespace zeus
