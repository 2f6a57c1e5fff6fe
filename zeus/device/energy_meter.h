#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus {

class ReadingFeed;  // zeus/device/reading_feed.h

// One reading of an energy counter.
struct EnergyReading {
  // Since an arbitrary origin. Never decreases for one meter, not even across epochs.
  Joules total;

  // Grows by one each time the counter started again (driver reload, GPU reset). Energy used
  // between the last reading of an epoch and its end is lost: a window that spans two epochs is
  // a lower bound and must say so.
  std::uint64_t epoch = 0;

  // When the driver took the value, where it tells.
  std::optional<WallTime> taken_at;
};

// Anything that knows its energy, or at least its power: a GPU, a CPU package, a DRAM domain, a
// board rail, a trace being replayed. This is all the monitor needs to know about hardware.
// Thread-safe. What a device cannot tell is an error with a reason, never a zero.
class EnergyMeter {
 public:
  virtual ~EnergyMeter() = default;

  // "gpu:0", "cpu:1", "dram:1", "rail:VDD_IN". Unique within the machine.
  virtual const std::string& name() const = 0;

  // kNotSupported when the device has no energy counter; then Power() must be integrated.
  virtual Result<EnergyReading> Energy() = 0;

  // The best present reading of power. kNotSupported when the device has a counter only.
  virtual Result<Watts> Power() = 0;

  // Readings further apart than this may lose energy: the counter is narrow and turns over without
  // a trace. A recorder must read at least this often; nullopt when any interval is safe.
  virtual std::optional<Seconds> LongestReadInterval() const { return std::nullopt; }

  // The readings that a recorder in another process takes of this device, from now on and of late.
  // Null where this process must read it.
  virtual std::shared_ptr<ReadingFeed> Follow() { return nullptr; }

  Result<Joules> TotalEnergy() {
    ZEUS_TRY(const EnergyReading reading, Energy());
    return reading.total;
  }
};

// A supply rail of a board (Jetson, Grace): power only, for the whole module or a part of it.
class PowerRail : public EnergyMeter {
 public:
  enum class Role {
    kTotal,  // Contains the other rails: never add it to them.
    kPart,
  };
  virtual Role role() const = 0;
};

}  // namespace zeus
