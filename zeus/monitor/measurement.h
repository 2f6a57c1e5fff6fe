#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus {

enum class EnergySource {
  kCounter,     // The device's own energy counter.
  kIntegrated,  // Power readings, integrated here.
  kModel,       // An estimate from something other than a reading of this device.
};
const char* EnergySourceName(EnergySource source);  // "counter", "integrated", "model"

// Warnings for the reader of a measurement.
enum class MeasurementFlag : std::uint32_t {
  kCounterReset = 1U << 0,  // The driver was reloaded: energy between the two epochs is lost.
  kStaleCounter = 1U << 1,  // The counter stood still although time passed.
  kShortWindow = 1U << 2,   // Shorter than three updates of the sensor.
  kLimitChanged = 1U << 3,  // The power limit was changed during the window.
  kThrottled = 1U << 4,     // The device slowed itself down: heat, or a cap from outside.
  kSensorAliasingPossible = 1U << 5,  // The sensor sees part of the time and the load is uneven.
  kEstimated = 1U << 6,               // Not from this device's own readings.
  kPartial = 1U << 7,                 // The device could not be read during a part of the window.
  kShared = 1U << 8,  // Other windows or processes used the device too: see `attributed`.
  // The load was steady up to the sensor's last update; a change after it may move the energy by
  // more than a hundredth, and is not in sigma. Never on a refined result.
  kPreview = 1U << 9,
};

class MeasurementFlags {
 public:
  constexpr MeasurementFlags() = default;
  constexpr bool Has(MeasurementFlag flag) const {
    return (bits_ & static_cast<std::uint32_t>(flag)) != 0;
  }
  constexpr void Set(MeasurementFlag flag) { bits_ |= static_cast<std::uint32_t>(flag); }
  constexpr bool empty() const { return bits_ == 0; }

  // "counter_reset", …, in the order of the enumeration.
  std::vector<std::string_view> Names() const;
  // The flag of such a name; nullopt if there is none.
  static std::optional<MeasurementFlag> Parse(std::string_view name);

  // The union of the flags.
  friend constexpr MeasurementFlags operator|(MeasurementFlags a, MeasurementFlags b) {
    a.bits_ |= b.bits_;
    return a;
  }
  friend constexpr bool operator==(MeasurementFlags, MeasurementFlags) = default;

 private:
  std::uint32_t bits_ = 0;
};

// The energy of one device between two instants.
struct EnergyEstimate {
  Joules energy;
  Joules sigma;  // One standard deviation, everything included: edges, gaps, gain of the board.

  // The part of sigma that all windows of this device have in common, gain and offset of its
  // sensor: it is no doubt about which of two windows used more.
  Joules shared_sigma{0};

  // This window's part of `energy` when several windows or processes used the device at once: the
  // parts and the unclaimed rest add up to the energy of the device. Equal to `energy` for a window
  // that had the device to itself and contained no other window.
  Joules attributed;

  EnergySource source;
  double coverage;        // Share of the window that the sensor observed, 0 to 1.
  int updates;            // New values that the sensor showed inside the window.
  Seconds update_period;  // Period of the sensor's updates.
  MeasurementFlags flags;
};

struct DeviceMeasurement {
  std::string device;  // "gpu:0"
  // A device that could not be read has a reason and no number.
  Result<EnergyEstimate> energy;
  // False for a rail that contains other devices of the list.
  bool in_total = true;
};

enum class WindowId : std::uint64_t {};

// The result of one window.
struct Measurement {
  WindowId id{};
  std::string window{};
  WallTime started{};  // Labels the record; `time` is monotonic and knows nothing of it.
  TimePoint begin{};   // On the clock that the monitor was given.
  Seconds time{};
  enum class Stage { kImmediate, kRefined } stage = Stage::kImmediate;
  std::vector<DeviceMeasurement> devices{};

  // Sums name what they contain.
  struct Total {
    Joules energy;
    Joules sigma;
    Joules shared_sigma;  // See EnergyEstimate; boards are independent of each other.
    Joules attributed;
    std::vector<std::string> contains;
    std::vector<std::string> missing;  // Devices without a number.
  };
  Total Sum() const;

  const DeviceMeasurement* Find(std::string_view device) const;
};

// "1234 ± 31 J (counter, 100 ms, 12 updates)"; the ± is one standard deviation. A device without
// a number gives its reason.
std::string ToText(const EnergyEstimate& estimate);
std::string ToText(const DeviceMeasurement& device);

}  // namespace zeus
